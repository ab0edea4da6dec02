import { checkOptions } from "../../../core/settings.js";
import { describeValue } from "../../../core/format.js";
import { invalidArgument, LlamaGymError } from "../../../core/errors.js";
import type { Extractor } from "./extractor.js";
import { stripPunctuation } from "./strip-punctuation.js";

/** @throws INVALID_ARGUMENT for an empty list and for choices without a letter or digit. */
export function checkChoices(choices: readonly string[]): void {
  if (!Array.isArray(choices))
    throw invalidArgument(`\`choices\` must be a list of texts, got ${describeValue(choices)}.`);
  if (choices.length === 0) throw new LlamaGymError("INVALID_ARGUMENT", "`choices` is empty; pass at least one.");
  const empty = choices.find((choice) => normalizeChoice(choice) === "");
  if (empty !== undefined)
    throw new LlamaGymError(
      "INVALID_ARGUMENT",
      `The choice ${JSON.stringify(empty)} has no letter or digit and can never be found in a completion.`,
    );
}

/**
 * Finds the choice that equals the completion or its last such line, ignoring case, quotes,
 * punctuation, "_" and "-".
 */
export function exactChoice(choices: readonly string[]): Extractor<string> {
  checkChoices(choices);
  const normalizedChoices = choices.map(normalizeChoice);
  const maxLength = Math.max(...choices.map(({ length }) => length));
  const matchChoice = (text: string) => {
    const stripped = stripPunctuation(text);
    if (stripped.length > 2 * maxLength) return undefined;
    const exact = choices.find((choice) => choice === text || choice === stripped);
    return exact ?? choices[normalizedChoices.indexOf(normalizeChoice(stripped))];
  };
  return (completion) => {
    const value = [...completion.split("\n"), completion].map(matchChoice).findLast((choice) => choice !== undefined);
    return value === undefined ? undefined : { kind: "choice", value };
  };
}

/** Options of `numberedChoice`. */
export interface NumberedChoiceOptions {
  /** Number of the first choice: 0 as in action spaces, 1 as in printed lists. Default 0. */
  readonly first?: number;
}

/**
 * Finds a choice by its number: "2", "(2)", "#2", or the last "option 2", "action 2" and similar.
 */
export function numberedChoice(choices: readonly string[], options: NumberedChoiceOptions = {}): Extractor<string> {
  checkOptions("numberedChoice", options, { first: true });
  const { first = 0 } = options;
  checkChoices(choices);
  return (completion) => {
    const bareNumber = /^\d+$/.exec(stripPunctuation(completion))?.[0];
    const labeledNumber = [
      ...completion.matchAll(/(?:\b(?:option|choice|number|action|move|nr|no)\.?|#)\s*[:=]?\s*(\d+)\b/gi),
    ].at(-1);
    const number = bareNumber ?? labeledNumber?.[1];
    const value = number === undefined ? undefined : choices[Number(number) - first];
    return value === undefined ? undefined : { kind: "number", value };
  };
}

/** Options of `nearestChoice`. */
export interface NearestChoiceOptions {
  /** Maximum edit distance as a fraction of the choice's length. Default 0.3. */
  readonly threshold?: number;
}

/**
 * Finds the choice with the smallest Damerau-Levenshtein distance to the whole completion, if it is
 * unique. With the default threshold a choice of 3 letters allows no error and one of 4 letters a
 * single one.
 */
export function nearestChoice(choices: readonly string[], options: NearestChoiceOptions = {}): Extractor<string> {
  checkOptions("nearestChoice", options, { threshold: true });
  const { threshold = 0.3 } = options;
  checkChoices(choices);
  return (completion) => {
    const stripped = stripPunctuation(completion);
    // The distance is quadratic in the length, and a long completion matches nothing.
    if (stripped === "" || stripped.length > 2 * Math.max(...choices.map(({ length }) => length))) return undefined;
    const normalized = normalizeChoice(stripped);
    const candidates = choices
      .map((value) => ({ value, letters: normalizeChoice(value) }))
      .map(({ value, letters }) => ({ value, letters, distance: editDistance(normalized, letters) }))
      .filter(({ letters, distance }) => distance <= threshold * letters.length);
    const minDistance = Math.min(...candidates.map(({ distance }) => distance));
    const nearest = candidates.filter(({ distance }) => distance === minDistance);
    return nearest.length === 1 ? { kind: "nearest", value: nearest[0].value } : undefined;
  };
}

/** Text in lower case without punctuation, with spaces for "_" and "-". */
function normalizeChoice(text: string): string {
  return stripPunctuation(text.replace(/[_-]+(?=[\p{L}\p{N}])/gu, " ").toLowerCase());
}

/**
 * Damerau-Levenshtein distance (optimal string alignment): substitutions, insertions, deletions,
 * swaps of adjacent letters.
 */
export function editDistance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const changed = last[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1);
      row[j] = Math.min(changed, last[j] + 1, row[j - 1] + 1);
      const isSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (isSwapped) row[j] = Math.min(row[j], beforeLast[j - 2] + 1);
    }
    beforeLast = last;
    last = row;
  }
  return last[b.length];
}
