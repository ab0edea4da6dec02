import { LruCache } from "../../../core/lru-cache.js";
import { buildTextAutomaton } from "../regex/build-text-automaton.js";
import { type RegexExpression, NO_MATCH, alternatives, characters, literal } from "../regex/expression.js";
import { TextAutomaton } from "../regex/text-automaton.js";
import { characterSet } from "../regex/character-set.js";
import { parseRegex } from "../regex/parse-regex.js";
import { FRACTION, INTEGER, TYPE_BITS, schemaError } from "./keywords.js";
import { type Bounds, fractionsWithin, integerRange, listMultiples, numberRange } from "./number-range.js";
import type { ValueShape } from "./value-shape.js";
import { ofTexts } from "./string-language.js";

/** Maximum divisor, in units of its last decimal, of multiples that are not listed one by one. */
const MAX_DIVISOR = 1_000;

/** Maximum number of ranges of numbers whose automata are kept: most schemas have the same ones. */
const MAX_CACHED_RANGES = 256;

/**
 * Returns the expression of a shape's numbers. @throws INVALID_ARGUMENT for a "multipleOf" that
 * needs too many states.
 */
export function writeNumbers(shape: ValueShape, path: string): RegexExpression {
  const { types, bounds, divisors, excludedDivisors, excluded } = shape;
  const limits = mergeBounds(bounds);
  const excludedTexts = excluded.filter((value) => typeof value === "number").map(String);
  const [first] = divisors;
  const listed =
    first !== undefined && Number.isSafeInteger(first) && first >= 1 ? listMultiples(first, limits) : undefined;
  if (listed !== undefined) {
    const kept = listed.filter(
      (text) =>
        !excludedTexts.includes(text) &&
        divisors.every((divisor) => isMultiple(Number(text), divisor)) &&
        !excludedDivisors.some((divisor) => isMultiple(Number(text), divisor)),
    );
    return (types & INTEGER) === 0 ? alternatives([]) : alternatives(kept.map(literal));
  }
  const needsDivision = divisors.length + excludedDivisors.length > 0;
  let automaton = needsDivision && hasWideBounds(limits) ? shortNumbers(types, limits) : rangeAutomaton(types, limits);
  for (const divisor of divisors) automaton = automaton.and(multiplesOf(divisor, path));
  for (const divisor of excludedDivisors) automaton = automaton.without(multiplesOf(divisor, path));
  if (excludedTexts.length > 0) automaton = automaton.without(ofTexts(excludedTexts));
  return { kind: "automaton", automaton, write: characters };
}

/** Returns whether numbers are bounded by zero at most. */
function hasWideBounds({ minimum, maximum, exclusiveMinimum, exclusiveMaximum }: Bounds): boolean {
  return [minimum, maximum, exclusiveMinimum, exclusiveMaximum].every((bound) => bound === undefined || bound === 0);
}

/**
 * Matches numbers of at most 15 digits and six decimals, bounded by zero at most, with few states.
 */
function shortNumbers(types: number, { minimum, maximum, exclusiveMinimum, exclusiveMaximum }: Bounds): TextAutomaton {
  const isPositive = minimum !== undefined || exclusiveMinimum !== undefined;
  const isNegative = maximum !== undefined || exclusiveMaximum !== undefined;
  if (isPositive && isNegative) return buildTextAutomaton(minimum === 0 && maximum === 0 ? literal("0") : NO_MATCH);
  const sign = isNegative ? "-" : isPositive ? "" : "-?";
  const zero = exclusiveMinimum === undefined && exclusiveMaximum === undefined ? ["0"] : [];
  const numbers = [
    ...((types & INTEGER) === 0 ? [] : [...zero, `${sign}[1-9]\\d{0,14}`]),
    ...((types & FRACTION) === 0 ? [] : [`${sign}(?:0|[1-9]\\d{0,8})\\.\\d{0,5}[1-9]`]),
  ];
  return buildTextAutomaton(parseRegex(numbers.join("|")));
}

const rangeAutomata = new LruCache<TextAutomaton>(MAX_CACHED_RANGES);

/** Returns the numbers of types within bounds. */
function rangeAutomaton(types: number, bounds: Bounds): TextAutomaton {
  const key = JSON.stringify([types & TYPE_BITS.number, bounds]);
  return rangeAutomata.getOrCreate(key, () => buildTextAutomaton(writeRange(types, bounds)));
}

function writeRange(types: number, bounds: Bounds): RegexExpression {
  if ((types & FRACTION) === 0) return integerRange(bounds);
  return (types & INTEGER) === 0 ? fractionsWithin(bounds) : numberRange(bounds);
}

/** Combines bounds that all apply. */
export function mergeBounds(bounds: readonly Bounds[]): Bounds {
  const pick = (name: keyof Bounds, choose: (...values: number[]) => number) => {
    const values = bounds.map((each) => each[name]).filter((value) => value !== undefined);
    return values.length === 0 ? undefined : choose(...values);
  };
  return {
    minimum: pick("minimum", Math.max),
    maximum: pick("maximum", Math.min),
    exclusiveMinimum: pick("exclusiveMinimum", Math.max),
    exclusiveMaximum: pick("exclusiveMaximum", Math.min),
  };
}

/** Returns whether a number is a multiple of another, as they are written in decimal. */
export function isMultiple(value: number, divisor: number): boolean {
  const [a, b] = [toDecimal(value), toDecimal(divisor)];
  const decimals = Math.max(a.decimals, b.decimals);
  const scale = ({ digits, decimals: own }: { digits: bigint; decimals: number }) =>
    digits * 10n ** BigInt(decimals - own);
  return scale(b) !== 0n && scale(a) % scale(b) === 0n;
}

/** Splits a number into its digits and the number of them after the point. */
function toDecimal(value: number): { digits: bigint; decimals: number } {
  const [, sign, whole, fraction = "", exponent = "0"] = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/.exec(String(value))!;
  const digits = BigInt(sign + whole + fraction);
  const decimals = fraction.length - Number(exponent);
  return decimals >= 0 ? { digits, decimals } : { digits: digits * 10n ** BigInt(-decimals), decimals: 0 };
}

/**
 * Matches the decimals of a divisor's multiples: states are a remainder and the number of decimals.
 */
function multiplesOf(divisor: number, path: string): TextAutomaton {
  const { digits, decimals } = toDecimal(divisor);
  if (digits <= 0n || digits > MAX_DIVISOR || decimals > 6)
    throw schemaError(
      path,
      `"multipleOf" is supported up to ${MAX_DIVISOR} units of its last decimal, or with bounds of at most 10,000 multiples, got ${divisor}`,
    );
  const modulus = Number(digits);
  // The classes are "-", "." and the digits; state 0 is the start, before a sign.
  const classes = Array.from("-.0123456789", (character) => {
    const code = character.codePointAt(0)!;
    return characterSet([[code, code]]);
  });
  const state = (places: number, remainder: number) => 1 + places * modulus + remainder;
  const rows: number[][] = [];
  const accepting: boolean[] = [];
  rows.push([state(0, 0), -1, ...Array.from({ length: 10 }, (_, digit) => state(0, digit % modulus))]);
  accepting.push(false);
  for (let places = 0; places <= decimals + 1; places++) {
    for (let remainder = 0; remainder < modulus; remainder++) {
      // Places 0 are before the point; places n + 1 follow n decimals.
      const count = Math.max(0, places - 1);
      const canAddDigit = places === 0 || count < decimals;
      const next = places === 0 ? 0 : places + 1;
      rows.push([
        -1,
        places === 0 && decimals > 0 ? state(1, remainder) : -1,
        ...Array.from({ length: 10 }, (_, digit) =>
          canAddDigit ? state(next, (remainder * 10 + digit) % modulus) : -1,
        ),
      ]);
      const isEnd = places !== 1 && (remainder * 10 ** (decimals - count)) % modulus === 0;
      accepting.push(isEnd);
    }
  }
  return TextAutomaton.create(classes, rows, accepting);
}
