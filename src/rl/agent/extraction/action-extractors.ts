import { checkOptions, type OptionNames } from "../../../core/settings.js";
import { findLastNamed } from "../../../envs/index.js";
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

/** Longest text that is parsed as an action without naming a choice, in words. */
const MAX_NAME_WORDS = 6;

/** Options of `actionExtractors`. */
export interface ActionExtractorOptions
  extends JsonActionOptions, TaggedAnswerOptions, NumberedChoiceOptions, NearestChoiceOptions, MentionedChoiceOptions {
  /** Valid actions as texts. Without them any text is an action, or what `parse` returns for it. */
  readonly choices?: readonly string[];
  /** A regular expression whose group named `action`, or first group, is the action. */
  readonly pattern?: RegExp;
  /**
   * Whether a number selects a choice. Default true; set false if the prompt does not number the
   * choices.
   */
  readonly numbers?: boolean;
}

const optionNames: OptionNames<ActionExtractorOptions> = {
  choices: Array,
  pattern: true,
  numbers: Boolean,
  keys: Array,
  names: Array,
  first: true,
  threshold: true,
  where: true,
};

/**
 * Creates the standard extractors in order: JSON, tagged answer, pattern; then, with choices, exact
 * choice, mention, number, nearest choice. The content of JSON, a tag or the pattern must be an
 * action. `parse` maps a text to an action (an environment's `parseAction`); without it actions are
 * texts.
 * @throws INVALID_ARGUMENT for an empty list of choices.
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
  checkOptions("actionExtractors", options, optionNames);
  const { choices, pattern, numbers = true, keys, names, first, threshold, where } = options;
  const parseText = fromFunction((text) => (parse === undefined ? text : parse(text)));
  const markedExtractors = [
    jsonAction({ keys }),
    taggedAnswer({ names }),
    ...(pattern === undefined ? [] : [regexMatch(pattern)]),
  ];
  if (choices === undefined) {
    const refinedExtractors = markedExtractors.map((extractor) => refine(extractor, parseText));
    return parse === undefined ? refinedExtractors : [...refinedExtractors, parseText];
  }
  const choiceExtractors = [
    exactChoice(choices),
    mentionedChoice(choices, { where }),
    ...(numbers ? [numberedChoice(choices, { first })] : []),
    nearestChoice(choices, { threshold }),
  ].map((extractor) => refine(extractor, parseText));
  // Synonyms of a choice, in a short text.
  if (parse !== undefined)
    choiceExtractors.push(fromFunction((text) => (isUnlistedName(text, choices) ? parse(text) : undefined)));
  return [
    ...markedExtractors.map((extractor) => refine(extractor, firstMatch(...choiceExtractors))),
    ...choiceExtractors,
  ];
}

/** Whether a text is short and names no choice. */
function isUnlistedName(text: string, choices: readonly string[]): boolean {
  return text.split(/\s+/).length <= MAX_NAME_WORDS && findLastNamed(text, choices) === undefined;
}
