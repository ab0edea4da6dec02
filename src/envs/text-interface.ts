import type { Info } from "./info.js";

/** The possible replies: a list when they never change, a function of the state otherwise. */
export type Choices<Observation> = readonly string[] | ChoicesMethod<Observation>["choices"];

interface ChoicesMethod<Observation> {
  // As a method, so that an environment of one observation type is also an environment of unknown observations.
  choices(observation: Observation, info: Info): readonly string[];
}

/** How an environment reads as text: what a language model is told, shown, and understood to answer. */
export interface TextInterface<Observation, Action> {
  /** The task, said once at the start of a conversation. */
  readonly systemPrompt: string;
  /** The observation in a line or two: all that the next action depends on. */
  formatObservation(observation: Observation, info: Info): string;
  /** The action that a reply means; undefined when it names none. Where several are named the last one counts. */
  parseAction(reply: string, observation?: Observation, info?: Info): Action | undefined;
  /** The reply that means the action, such as a demonstration would give. */
  formatAction(action: Action): string;
  /** The possible replies, where they can be listed; `parseAction` understands each. */
  readonly choices?: Choices<Observation>;
}

/** The possible replies in a state; undefined when they cannot be listed. */
export function getChoices<Observation>(
  text: { readonly choices?: Choices<Observation> },
  observation: Observation,
  info: Info,
): readonly string[] | undefined {
  return typeof text.choices === "function" ? text.choices(observation, info) : text.choices;
}
