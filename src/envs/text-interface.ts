import type { Info } from "./info.js";

/** Possible completions: a list when they never change, otherwise a function of the state. */
export type Choices<Observation> = readonly string[] | ChoicesMethod<Observation>["choices"];

interface ChoicesMethod<Observation> {
  // Declared as a method for bivariance: an Env<Observation> is assignable to Env<unknown>.
  choices(observation: Observation, info: Info): readonly string[];
}

/**
 * Text interface of an environment: prompts for a language model and the parser of its completions.
 */
export interface TextInterface<Observation, Action> {
  /** Task description that opens every conversation. */
  readonly systemPrompt: string;
  /** Formats everything that the next action depends on, in one or two lines. */
  formatObservation(observation: Observation, info: Info): string;
  /**
   * Parses the action that a completion names, the last of several; undefined when it names none.
   */
  parseAction(reply: string, observation?: Observation, info?: Info): Action | undefined;
  /** Formats an action as a completion, for demonstrations. */
  formatAction(action: Action): string;
  /** Number of earlier turns that the next action depends on; prompts contain them. Default 0. */
  readonly historyTurns?: number;
  /** Possible completions, where they can be listed; `parseAction` accepts each. */
  readonly choices?: Choices<Observation>;
  /** JSON schema of possible completions; `parseAction` accepts each. */
  readonly jsonSchema?: Readonly<Record<string, unknown>>;
  /** Tools of others that completions call, where it makes sense to offer only some of them. */
  readonly optionalTools?: OptionalTools<Observation, Action>;
}

/** Tools that an environment can do without. */
export interface OptionalTools<Observation, Action> {
  /** Name of each tool and JSON schema of its arguments. */
  readonly parameters: ReadonlyMap<string, Readonly<Record<string, unknown>>>;
  /** Returns the interface without some of the tools. */
  without(names: readonly string[]): TextInterface<Observation, Action>;
}

/** Returns the possible completions in a state; undefined when they are not listed. */
export function getChoices<Observation>(
  text: { readonly choices?: Choices<Observation> },
  observation: Observation,
  info: Info,
): readonly string[] | undefined {
  return typeof text.choices === "function" ? text.choices(observation, info) : text.choices;
}

/** Whether a value is a list of possible completions: at least one text, and none empty. */
export const isChoices = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.length > 0 && value.every((choice) => typeof choice === "string" && choice !== "");

const LOST_VALUE = /\[object [A-Z]\w*\]|\b(?:undefined|NaN)\b/;

/**
 * Describes what a text lost where an object or a missing value was written into it; undefined for
 * a text that reads well.
 */
export function describeLostValue(text: string): string | undefined {
  const [value] = LOST_VALUE.exec(text) ?? [];
  if (value === undefined) return undefined;
  const cause = value.startsWith("[")
    ? value === "[object Promise]"
      ? "a promise was not awaited"
      : "write the fields of the object, or JSON.stringify it"
    : "a field is missing or misspelled, unless the word is meant";
  return `a text with "${value}": ${cause}`;
}
