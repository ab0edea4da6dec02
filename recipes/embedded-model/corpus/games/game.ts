import type { RandomStream } from "../../../../src/core/random/random-stream.js";
import { formatList } from "../conversation.js";
import type { Quantity } from "../quantities.js";

/** A fact that a text tells, as a question and its answer. */
export interface Fact {
  readonly skill: string;
  readonly question: string;
  readonly answer: string;
}

/** A moment of a game as a model is shown it. */
export interface ObservationSample {
  /** The observation. */
  readonly text: string;
  /** The replies that are in form; all are equally likely. */
  readonly validCompletions: readonly string[];
  /** Numbers that the text tells. */
  readonly quantities?: readonly Quantity[];
  readonly facts?: readonly Fact[];
}

/** A game under one system prompt; its moments are drawn over all of its observations. */
export interface Scenario {
  /** The environment's id, or a name for a made-up one. */
  readonly id: string;
  readonly system: string;
  readonly observe: (random: RandomStream) => ObservationSample;
}

export type ScenarioSampler = (random: RandomStream) => Scenario;

export const yesOrNo = (truth: boolean) => (truth ? "yes" : "no");

const INSTRUCTIONS: readonly ((choices: readonly string[]) => string)[] = [
  (choices) => `Answer ${formatList(choices, "or")}.`,
  (choices) => `Your action: ${formatList(choices, "or")}`,
  (choices) => `Your action is ${formatList(choices, "or")}.`,
  (choices) => `Reply with ${formatList(choices, "or")}.`,
  (choices) => `Choose one: ${choices.join(", ")}.`,
  (choices) => `Say ${formatList(choices, "or")}.`,
  (choices) => `Possible actions: ${choices.join(", ")}. Answer with one of them.`,
  (choices) => `Your choices are ${formatList(choices, "and")}.`,
  (choices) => `Decide: ${formatList(choices, "or")}?`,
  (choices) => `You can ${formatList(choices, "or")}. Answer with your action alone.`,
];

/** A sentence that says which replies there are, in any order. */
export function drawInstruction(choices: readonly string[], random: RandomStream): string {
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
  return [random.choice(openings), ...kept, drawInstruction(choices, random)].join(" ");
}
