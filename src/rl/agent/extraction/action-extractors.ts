import { findLastNamed } from "../../../envs/text-parsing.js";
import { mentionedChoice, type MentionedChoiceOptions } from "./mentioned-choice.js";
import {
  nearestChoice,
  type NearestChoiceOptions,
  numberedChoice,
  type NumberedChoiceOptions,
  exactChoice,
} from "./choice-extractors.js";
import { fromFunction, firstMatch, refine } from "./extract-action.js";
import type { Extractor } from "./extractor.js";
import { jsonAction, type JsonActionOptions } from "./json-action.js";
import { regexMatch } from "./regex-match.js";
import { taggedAnswer, type TaggedAnswerOptions } from "./tagged-answer.js";

/** Words of a name such as "put the lamp on the shelf". */
const MAX_NAME_WORDS = 6;

export interface ActionExtractorOptions
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
export function actionExtractors(options?: ActionExtractorOptions): Extractor<string>[];
export function actionExtractors<Action>(
  options: ActionExtractorOptions,
  parse: (text: string) => Action | undefined,
): Extractor<Action>[];
export function actionExtractors<Action>(
  options: ActionExtractorOptions = {},
  parse?: (text: string) => Action | undefined,
): Extractor<Action | string>[] {
  const { choices, pattern, numbers = true } = options;
  const parseText = fromFunction((text) => (parse === undefined ? text : parse(text)));
  const markedExtractors = [
    jsonAction(options),
    taggedAnswer(options),
    ...(pattern === undefined ? [] : [regexMatch(pattern)]),
  ];
  if (choices === undefined) {
    const refinedExtractors = markedExtractors.map((extractor) => refine(extractor, parseText));
    return parse === undefined ? refinedExtractors : [...refinedExtractors, parseText];
  }
  const choiceExtractors = [
    exactChoice(choices),
    mentionedChoice(choices, options),
    ...(numbers ? [numberedChoice(choices, options)] : []),
    nearestChoice(choices, options),
  ].map((extractor) => refine(extractor, parseText));
  // Other words for a choice, in a text that says nothing else.
  if (parse !== undefined)
    choiceExtractors.push(fromFunction((text) => (isUnlistedName(text, choices) ? parse(text) : undefined)));
  return [
    ...markedExtractors.map((extractor) => refine(extractor, firstMatch(...choiceExtractors))),
    ...choiceExtractors,
  ];
}

/** Whether a text is a name at most, and that of no choice. */
function isUnlistedName(text: string, choices: readonly string[]): boolean {
  return text.split(/\s+/).length <= MAX_NAME_WORDS && findLastNamed(text, choices) === undefined;
}
