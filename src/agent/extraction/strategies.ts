import { lastNamed } from "../../envs/text-parsing.js";
import { mentionedChoice, type MentionedChoiceOptions } from "./mentioned-choice.js";
import {
  nearestChoice,
  type NearestChoiceOptions,
  numberedChoice,
  type NumberedChoiceOptions,
  wholeChoice,
} from "./choice-list.js";
import { byFunction, either, within } from "./extraction.js";
import type { Extractor } from "./extractor.js";
import { jsonAction, type JsonActionOptions } from "./json-action.js";
import { regexMatch } from "./regex-match.js";
import { taggedAnswer, type TaggedAnswerOptions } from "./tagged-answer.js";

/** Words of a name such as "put the lamp on the shelf". */
const LONGEST_NAME = 6;

export interface ReadingOptions
  extends JsonActionOptions, TaggedAnswerOptions, NumberedChoiceOptions, NearestChoiceOptions, MentionedChoiceOptions {
  /** What a reply may say. Without them a text is an action as it stands, or as `parse` reads it. */
  readonly choices?: readonly string[];
  /** A regular expression whose group named `action`, or first group, is the action. */
  readonly pattern?: RegExp;
  /** Whether a number means a place in the list of choices. Default true; false where the list is not shown with numbers. */
  readonly numbers?: boolean;
}

/**
 * The ways in which an action is looked for, in order: JSON, a tagged answer, the pattern; then, with choices, the whole reply as
 * one of them, the one that it speaks of, its number, the nearest. What JSON, a tag or the pattern holds must itself be an action.
 * `parse` gives the action that a text means (an environment's `parseAction`): a choice, or without choices what was found, or the
 * whole reply in the end. Without it actions are texts. Throws INVALID_ARGUMENT for an empty list of choices.
 */
export function actionStrategies(options?: ReadingOptions): Extractor<string>[];
export function actionStrategies<Action>(
  options: ReadingOptions,
  parse: (text: string) => Action | undefined,
): Extractor<Action>[];
export function actionStrategies<Action>(
  options: ReadingOptions = {},
  parse?: (text: string) => Action | undefined,
): Extractor<Action | string>[] {
  const { choices, pattern, numbers = true } = options;
  const means = byFunction((text) => (parse === undefined ? text : parse(text)));
  const marked = [jsonAction(options), taggedAnswer(options), ...(pattern === undefined ? [] : [regexMatch(pattern)])];
  if (choices === undefined) {
    const read = marked.map((way) => within(way, means));
    return parse === undefined ? read : [...read, means];
  }
  const ways = [
    wholeChoice(choices),
    mentionedChoice(choices, options),
    ...(numbers ? [numberedChoice(choices, options)] : []),
    nearestChoice(choices, options),
  ].map((way) => within(way, means));
  // Other words for a choice, in a text that says nothing else.
  if (parse !== undefined) ways.push(byFunction((text) => (isOtherName(text, choices) ? parse(text) : undefined)));
  return [...marked.map((way) => within(way, either(...ways))), ...ways];
}

/** Whether a text is a name at most, and that of no choice. */
function isOtherName(text: string, choices: readonly string[]): boolean {
  return text.split(/\s+/).length <= LONGEST_NAME && lastNamed(text, choices) === undefined;
}
