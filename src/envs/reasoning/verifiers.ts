import { ExpressionError, ArithmeticParser } from "../arithmetic-parser.js";
import type { JsonObject } from "../../core/json.js";

/** What a verifier needs of an item. */
export interface Solution {
  /** Reference answer. */
  readonly answer: string;
  /** Facts of the question, by Reasoning Gym's names. */
  readonly metadata: JsonObject;
}

/** Scores an answer, 0 to 1 except for rounding; null is no answer. */
export type Verifier = (answer: string | null, solution: Solution) => number;

const countCharacters = (text: string) => Array.from(text).length;

/** 1 for the reference answer, its share of the text where it is contained, else 0. */
export const verifyContained: Verifier = (answer, { answer: oracle }) => {
  if (answer === null || !answer.includes(oracle)) return 0;
  return answer === oracle ? 1 : countCharacters(oracle) / countCharacters(answer);
};

/** 1 for the same decimal number however it is written, else the rule of `verifyContained`. */
export const verifyDecimal: Verifier = (answer, solution) => {
  if (answer === null) return 0;
  const value = parseDecimal(answer);
  return value !== undefined && value === parseDecimal(solution.answer) ? 1 : verifyContained(answer, solution);
};

/** Returns a decimal number in one spelling, its digits and exponent; undefined for other text. */
function parseDecimal(text: string): string | undefined {
  const plain = text.replaceAll(",", "").trim().replaceAll("_", "");
  const [, sign, whole = "", fraction = "", exponent = "0"] =
    /^([-+]?)(?=\.?\d)(\d*)(?:\.(\d*))?(?:[eE]([-+]?\d+))?$/.exec(plain) ?? [];
  if (sign === undefined) return undefined;
  const digits = `${whole}${fraction}`.replace(/^0+/, "");
  const significant = digits.replace(/0+$/, "");
  if (significant === "") return "0";
  const scale = BigInt(exponent) - BigInt(fraction.length) + BigInt(digits.length - significant.length);
  return `${sign === "-" ? "-" : ""}${significant}e${scale}`;
}

/**
 * The share of positions with the right letter in any case; all of them with more letters after
 * cost 0.2.
 */
export const verifyLetters: Verifier = (answer, { answer: oracle }) => {
  if (answer === null) return 0;
  const [given, expected] = [answer.toLowerCase(), oracle.toLowerCase()];
  if (given === expected) return 1;
  const letters = Array.from(expected);
  const share = 1 / letters.length;
  const positions = Array.from(given).slice(0, letters.length);
  const score = positions.reduce((sum, letter, i) => (letter === letters[i] ? sum + share : sum), 0);
  return score === 1 ? score - 0.2 : score;
};

/**
 * 0.01 for what has no value, 0.05 for other numbers or another value, 1 for an expression of the
 * target.
 */
export const verifyCountdown: Verifier = (answer, { metadata }) => {
  const value = answer === null ? NaN : evaluate(answer);
  if (!Number.isFinite(value)) return 0.01;
  const sort = (numbers: readonly number[]) => numbers.toSorted((a, b) => a - b).join();
  const used = sort((answer!.match(/\b\d+\b/g) ?? []).map(Number));
  if (used !== sort(metadata.numbers as number[])) return 0.05;
  const target = metadata.target as number;
  return Math.abs(value - target) <= 1e-5 * Math.abs(target) ? 1 : 0.05;
};

function evaluate(expression: string): number {
  try {
    return ArithmeticParser.evaluate(expression, { isPython: true });
  } catch (error) {
    if (error instanceof ExpressionError) return NaN;
    throw error;
  }
}

/** 1 for a JSON list of numbers in the asked order, each within 1 of the reference, else 0. */
export const verifySortedNumbers: Verifier = (answer, { answer: oracle, metadata }) => {
  const given = parseNumbers(answer ?? "");
  const expected = parseNumbers(oracle);
  if (given === undefined || expected === undefined || given.length !== expected.length) return 0;
  const sign = metadata.direction === "descending" ? -1 : 1;
  const isInOrder = given.every((value, i) => i === 0 || sign * (value - given[i - 1]) >= 0);
  return isInOrder && given.every((value, i) => Math.abs(value - expected[i]) <= 1) ? 1 : 0;
};

/** Reads a JSON list of numbers, also in quotes, which may be single. */
function parseNumbers(text: string): number[] | undefined {
  let list: unknown;
  try {
    list = JSON.parse(text.replaceAll("'", '"'));
  } catch {
    return undefined;
  }
  if (!Array.isArray(list)) return undefined;
  const numbers = list.map((value: unknown) => {
    if (typeof value === "number") return value;
    return typeof value === "string" && /^\s*[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?\s*$/i.test(value)
      ? Number(value)
      : NaN;
  });
  return numbers.every(Number.isFinite) ? numbers : undefined;
}

/** Pairs of names for those who tell the truth and those who lie. */
export const ROLES = [
  ["knight", "knave"],
  ["pioneer", "laggard"],
  ["saint", "sinner"],
  ["hero", "villain"],
  ["angel", "devil"],
  ["altruist", "egoist"],
  ["sage", "fool"],
] as const;
const ROLE_NAMES: ReadonlySet<string> = new Set(ROLES.flat());
const SKIPPED_WORDS = ["and", "is", "a", "an"];

/**
 * 1 for the same roles of the same people; where as many are named, 0.3 and the share of right
 * ones, if any is.
 */
export const verifyRoles: Verifier = (answer, { answer: oracle }) => {
  const [given, expected] = [readRoles(answer ?? ""), readRoles(oracle)];
  const matches = [...given].filter((pair) => expected.has(pair)).length;
  if (given.size !== expected.size || matches === 0) return 0;
  return matches === expected.size ? 1 : 0.3 + 0.7 * (matches / expected.size);
};

/** Reads pairs of a name and a role, without regard to other words. */
function readRoles(text: string): Set<string> {
  const words = text
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_]/gu, "")
    .split(/\s+/);
  const kept = words.filter((word) => word !== "" && !SKIPPED_WORDS.includes(word));
  return new Set(kept.flatMap((word, i) => (i > 0 && ROLE_NAMES.has(word) ? [`${kept[i - 1]} ${word}`] : [])));
}

/** The share of right positions in a list with commas; at least 0.2 for the right words. */
export const verifySortedWords: Verifier = (answer, { answer: oracle }) => {
  if (answer === null) return 0;
  const split = (text: string) => text.split(",").map((word) => word.trim());
  const [given, expected] = [split(answer), split(oracle)];
  const share = expected.filter((word, i) => word === given[i]).length / expected.length;
  const isPermutation = given.toSorted().join() === expected.toSorted().join();
  return isPermutation ? Math.max(share, 0.2) : share;
};

/** 1 for the solved grid, else 0.9 times the share of right cells, less for text around it. */
export const verifyGrid: Verifier = (answer, { answer: oracle }) => {
  if (answer === null || answer === "") return 0;
  const trimEnds = (text: string) =>
    text
      .split("\n")
      .map((line) => line.trimEnd())
      .join("\n")
      .trimEnd();
  if (trimEnds(answer) === trimEnds(oracle)) return 1;
  const readRows = (text: string) =>
    text.split("\n").flatMap((line) => {
      const digits = line.match(/[1-9]/g) ?? [];
      return digits.length === 4 ? [digits] : [];
    });
  const [given, expected] = [readRows(answer), readRows(oracle)];
  const cells = expected.flat();
  const right = expected.flatMap((row, y) => row.filter((digit, x) => given[y]?.[x] === digit)).length;
  const score = (0.9 * right) / cells.length;
  return answer.length > oracle.length ? score * (oracle.length / answer.length) : score;
};

/** Verifiers by Reasoning Gym's names of the tasks. */
export const VERIFIERS: Readonly<Record<string, Verifier>> = {
  gcd: verifyContained,
  lcm: verifyContained,
  letter_counting: verifyContained,
  base_conversion: verifyContained,
  leg_counting: verifyContained,
  simple_equations: verifyContained,
  count_bits: verifyContained,
  basic_arithmetic: verifyContained,
  caesar_cipher: verifyContained,
  chain_sum: verifyDecimal,
  spell_backward: verifyLetters,
  countdown: verifyCountdown,
  number_sorting: verifySortedNumbers,
  knights_knaves: verifyRoles,
  word_sorting: verifySortedWords,
  mini_sudoku: verifyGrid,
};
