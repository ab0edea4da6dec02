import type { RandomStream } from "../../../../src/tensor/random.js";
import { listed } from "../conversation.js";
import type { Quantity } from "../quantities.js";

/** A fact that a text tells, as a question and its answer. */
export interface Fact {
  readonly skill: string;
  readonly question: string;
  readonly answer: string;
}

/** A moment of a game as a model is shown it. */
export interface Moment {
  /** The observation. */
  readonly text: string;
  /** The replies that are in form; all are equally likely. */
  readonly replies: readonly string[];
  /** Numbers that the text tells. */
  readonly quantities?: readonly Quantity[];
  readonly facts?: readonly Fact[];
}

/** A game under one system prompt; its moments are drawn over all of its observations. */
export interface Game {
  /** The environment's id, or a name for a made-up one. */
  readonly id: string;
  readonly system: string;
  readonly moment: (random: RandomStream) => Moment;
}

export type DrawGame = (random: RandomStream) => Game;

export const yesOrNo = (truth: boolean) => (truth ? "yes" : "no");

const INSTRUCTIONS: readonly ((choices: readonly string[]) => string)[] = [
  (choices) => `Answer ${listed(choices, "or")}.`,
  (choices) => `Your action: ${listed(choices, "or")}`,
  (choices) => `Your action is ${listed(choices, "or")}.`,
  (choices) => `Reply with ${listed(choices, "or")}.`,
  (choices) => `Choose one: ${choices.join(", ")}.`,
  (choices) => `Say ${listed(choices, "or")}.`,
  (choices) => `Possible actions: ${choices.join(", ")}. Answer with one of them.`,
  (choices) => `Your choices are ${listed(choices, "and")}.`,
  (choices) => `Decide: ${listed(choices, "or")}?`,
  (choices) => `You can ${listed(choices, "or")}. Answer with your action alone.`,
];

/** A sentence that says which replies there are, in any order. */
export function instruction(choices: readonly string[], random: RandomStream): string {
  const order = random.random() < 0.5 ? choices : random.permutation(choices.length).map((i) => choices[i]);
  return random.choice(INSTRUCTIONS)(order);
}

/** Some of the sentences that describe a task, in their order, then what may be answered. */
export function paraphrase(
  openings: readonly string[],
  details: readonly string[],
  choices: readonly string[],
  random: RandomStream,
): string {
  const kept = details.filter(() => random.random() < 0.5);
  return [random.choice(openings), ...kept, instruction(choices, random)].join(" ");
}
