import { SplitPreTokenizer } from "@huggingface/tokenizers";

import { LlamaGymError } from "../../../core/errors.js";
import { excerpt } from "../../../core/format.js";
import { type JsonRecord, corruptFileError, isObject, readString } from "./tokenizer-json.js";

/** Maximum characters of a pattern; published ones have up to 600. */
const MAX_PATTERN_LENGTH = 10_000;

/**
 * Maximum unbounded repetitions in a row; published patterns have two. The time to match grows with
 * the text's power of it.
 */
const MAX_REPETITIONS = 3;

/** Maximum characters that a tokenizer inserts for a match; published ones insert one. */
const MAX_REPLACEMENT_LENGTH = 1_000;

/** Maximum characters of a text after a replacement. */
const MAX_REPLACED_LENGTH = 10_000_000;

/**
 * Compiles a tokenizer.json pattern ({ "String": ... } or { "Regex": ... } in Oniguruma's dialect,
 * translated by @huggingface/tokenizers) to a global regular expression. @throws
 * TOKENIZER_UNSUPPORTED for one that JavaScript lacks, or that may take exponential time.
 */
export function compilePattern(pattern: unknown): RegExp {
  if (!isObject(pattern)) throw corruptFileError("tokenizer.json: a pattern must be an object with String or Regex.");
  if (typeof pattern.String === "string") return new RegExp(escapeRegExp(pattern.String), "gu");
  const { Regex: regex } = pattern;
  if (typeof regex !== "string") throw corruptFileError("tokenizer.json: a pattern must have String or Regex.");
  const unsupported = (problem: string, cause?: unknown) =>
    new LlamaGymError(
      "TOKENIZER_UNSUPPORTED",
      `The pattern ${excerpt(JSON.stringify(regex))} in tokenizer.json ${problem}.`,
      { cause },
    );
  if (regex.length > MAX_PATTERN_LENGTH) throw unsupported(`has more than ${MAX_PATTERN_LENGTH} characters`);
  if (backtracksMuch(regex)) throw unsupported("nests repetitions, which can take exponential time");
  let expression: RegExp | null;
  try {
    expression = new SplitPreTokenizer({ type: "Split", pattern: { Regex: regex }, behavior: "Isolated" }).pattern;
  } catch (cause) {
    throw unsupported(`has no JavaScript form (${excerpt(String(cause))})`, cause);
  }
  if (!expression) throw unsupported("is not supported");
  return expression;
}

/** Creates a function that applies a Replace normalizer or decoder. */
export function createReplacer(config: JsonRecord): (text: string) => string {
  const pattern = compilePattern(config.pattern);
  const content = readString(config, "content");
  if (content.length > MAX_REPLACEMENT_LENGTH)
    throw corruptFileError(`tokenizer.json: a Replace inserts more than ${MAX_REPLACEMENT_LENGTH} characters.`);
  return (text) => {
    let length = text.length;
    return text.replace(pattern, (match: string) => {
      length += content.length - match.length;
      checkReplacedLength(length);
      return content;
    });
  };
}

/** @throws FILE_CORRUPT for a text that a replacement made too long. */
export function checkReplacedLength(length: number): void {
  if (length > MAX_REPLACED_LENGTH)
    throw corruptFileError(`tokenizer.json: a Replace makes a text longer than ${MAX_REPLACED_LENGTH} characters.`);
}

interface Group {
  /**
   * Whether the group contains a repetition or alternatives, so that repeating it may backtrack
   * exponentially.
   */
  isRisky: boolean;
  /** Unbounded repetitions in the current alternative, and the most in any. */
  repetitions: number;
  maxRepetitions: number;
}

/**
 * Whether a pattern repeats a group that has repetitions or alternatives, or has many repetitions
 * in a row.
 */
function backtracksMuch(regex: string): boolean {
  const groups: Group[] = [{ isRisky: false, repetitions: 0, maxRepetitions: 0 }];
  /** The group that the previous token closed. */
  let last: Group | undefined;
  let previous = "";
  for (const { 0: token } of regex.matchAll(/\\.|\[(?:\\.|\[(?:\\.|[^\]\\])*\]|[^\]\\])*\]|\{\d+,?\d*\}|[^]/gu)) {
    const group = groups[groups.length - 1];
    const limit = /^\{\d+,(\d*)\}$/.exec(token)?.[1];
    const isUnbounded = token === "*" || token === "+" || limit === "" || Number(limit) > 100;
    if (token === "(") {
      groups.push({ isRisky: false, repetitions: 0, maxRepetitions: 0 });
    } else if (token === ")" && groups.length > 1) {
      last = groups.pop();
      const parent = groups[groups.length - 1];
      parent.isRisky ||= last?.isRisky === true;
      parent.repetitions += Math.max(last?.maxRepetitions ?? 0, last?.repetitions ?? 0);
      if (parent.repetitions > MAX_REPETITIONS) return true;
      previous = token;
      continue;
    } else if (token === "|") {
      group.maxRepetitions = Math.max(group.maxRepetitions, group.repetitions);
      group.repetitions = 0;
      group.isRisky = true;
    } else if (isUnbounded) {
      if (last?.isRisky === true || ++group.repetitions > MAX_REPETITIONS) return true;
      group.isRisky = true;
    } else if (limit !== undefined || (token === "?" && previous !== "(")) {
      group.isRisky = true;
    }
    last = undefined;
    previous = token;
  }
  return false;
}

/** Returns an expression that matches a string literally. */
export function escapeRegExp(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
}
