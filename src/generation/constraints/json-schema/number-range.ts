import {
  EMPTY_TEXT,
  type RegexExpression,
  NO_MATCH,
  alternatives,
  characters,
  literal,
  repetition,
  sequence,
} from "../regex/expression.js";

/** Bounds of a number; undefined for none. */
export interface Bounds {
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly exclusiveMaximum?: number;
}

/** Integers up to this are exact in JavaScript. */
const MAX_INTEGER = BigInt(Number.MAX_SAFE_INTEGER);

/**
 * Maximum number of decimals. With nine digits before the point that makes 15, which a double
 * always preserves.
 */
const MAX_DECIMALS = 6;
const MAX_WHOLE_PART = 10n ** 9n;

const UNITS_PER_ONE = 10n ** BigInt(MAX_DECIMALS);

/** Matches the safe integers within bounds, without -0. */
export function integerRange(bounds: Bounds): RegexExpression {
  const [low, high] = limitsInUnits(bounds, 0, MAX_INTEGER);
  return withSign(low, high, naturalRange);
}

/**
 * Matches the numbers within bounds, as decimals without an exponent: integers, and numbers with at
 * most 9 digits before the point and at most 6 after it, the last of which is not 0.
 */
export function numberRange(bounds: Bounds): RegexExpression {
  return alternatives([integerRange(bounds), fractionsWithin(bounds)]);
}

/** Matches the numbers within bounds that are no integers. */
export function fractionsWithin(bounds: Bounds): RegexExpression {
  const [low, high] = limitsInUnits(bounds, MAX_DECIMALS, MAX_WHOLE_PART * UNITS_PER_ONE - 1n);
  return withSign(low, high, fractionRange);
}

/** Maximum number of multiples that are listed one by one. */
const MAX_LISTED_MULTIPLES = 10_000;

/** Lists the multiples of an integer within bounds; undefined if they are many. */
export function listMultiples(divisor: number, bounds: Bounds): string[] | undefined {
  const [low, high] = limitsInUnits(bounds, 0, MAX_INTEGER);
  const step = BigInt(divisor);
  // BigInt division rounds toward zero.
  const first = low / step + (low > 0n && low % step !== 0n ? 1n : 0n);
  const last = high / step - (high < 0n && high % step !== 0n ? 1n : 0n);
  if (last - first >= MAX_LISTED_MULTIPLES) return undefined;
  return Array.from({ length: Math.max(0, Number(last - first) + 1) }, (_, i) => String((first + BigInt(i)) * step));
}

/** Returns the least and the greatest multiple of 10^-decimals within bounds, in those units. */
function limitsInUnits(bounds: Bounds, decimals: number, max: bigint): [bigint, bigint] {
  const { minimum = -Infinity, maximum = Infinity, exclusiveMinimum = -Infinity, exclusiveMaximum = Infinity } = bounds;
  const lows = [-max];
  if (minimum > -Infinity) lows.push(-floorUnits(-minimum, decimals));
  if (exclusiveMinimum > -Infinity) lows.push(floorUnits(exclusiveMinimum, decimals) + 1n);
  const highs = [max];
  if (maximum < Infinity) highs.push(floorUnits(maximum, decimals));
  if (exclusiveMaximum < Infinity) highs.push(-floorUnits(-exclusiveMaximum, decimals) - 1n);
  return [lows.reduce((a, b) => (a > b ? a : b)), highs.reduce((a, b) => (a < b ? a : b))];
}

/**
 * Rounds a number, as it is written in decimal, down to a multiple of 10^-decimals, in those units.
 */
function floorUnits(value: number, decimals: number): bigint {
  const [, sign, whole, fraction = "", exponent = "0"] = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/.exec(String(value))!;
  const digits = BigInt(sign + whole + fraction);
  const shift = decimals + Number(exponent) - fraction.length;
  if (shift >= 0) return digits * 10n ** BigInt(shift);
  const divisor = 10n ** BigInt(-shift);
  const quotient = digits / divisor;
  return digits % divisor < 0n ? quotient - 1n : quotient;
}

/** Matches numbers of both signs, given the expression of their magnitudes. */
function withSign(
  low: bigint,
  high: bigint,
  magnitudes: (low: bigint, high: bigint) => RegexExpression,
): RegexExpression {
  const maxOf = (a: bigint, b: bigint) => (a > b ? a : b);
  return alternatives([sequence([literal("-"), magnitudes(maxOf(1n, -high), -low)]), magnitudes(maxOf(0n, low), high)]);
}

/** Matches the integers from low >= 0 to high, without leading zeros. */
function naturalRange(low: bigint, high: bigint): RegexExpression {
  if (low > high) return NO_MATCH;
  const options: RegexExpression[] = [];
  const maxLength = String(high).length;
  for (let length = String(low).length; length <= maxLength; length++) {
    const min = length === 1 ? 0n : 10n ** BigInt(length - 1);
    const max = 10n ** BigInt(length) - 1n;
    options.push(digitsBetween(String(low > min ? low : min), String(high < max ? high : max)));
  }
  return alternatives(options);
}

/** Matches the numbers with decimals, from low >= 0 to high in units. */
function fractionRange(low: bigint, high: bigint): RegexExpression {
  if (low > high) return NO_MATCH;
  const [first, last] = [low / UNITS_PER_ONE, high / UNITS_PER_ONE];
  const [from, to] = [low % UNITS_PER_ONE, high % UNITS_PER_ONE];
  const withPoint = (whole: RegexExpression, start: bigint, end: bigint) =>
    sequence([whole, literal("."), decimalsBetween(padUnits(start), padUnits(end)).nonEmpty]);
  if (first === last) return withPoint(naturalRange(first, first), from, to);
  return alternatives([
    withPoint(naturalRange(first, first), from, UNITS_PER_ONE - 1n),
    withPoint(naturalRange(first + 1n, last - 1n), 0n, UNITS_PER_ONE - 1n),
    withPoint(naturalRange(last, last), 0n, to),
  ]);
}

const padUnits = (units: bigint) => String(units).padStart(MAX_DECIMALS, "0");

/** Matches the strings of digits from low to high, which have the same length. */
function digitsBetween(low: string, high: string): RegexExpression {
  if (low === "") return EMPTY_TEXT;
  const rest = low.length - 1;
  const [zeros, nines] = ["0".repeat(rest), "9".repeat(rest)];
  if (low[0] === high[0]) return sequence([digit(low[0], low[0]), digitsBetween(low.slice(1), high.slice(1))]);
  if (low.slice(1) === zeros && high.slice(1) === nines)
    return sequence([digit(low[0], high[0]), repetition(digit("0", "9"), rest, rest)]);
  return alternatives([
    sequence([digit(low[0], low[0]), digitsBetween(low.slice(1), nines)]),
    sequence([digit(shiftDigit(low[0], 1), shiftDigit(high[0], -1)), repetition(digit("0", "9"), rest, rest)]),
    sequence([digit(high[0], high[0]), digitsBetween(zeros, high.slice(1))]),
  ]);
}

/** Strings of digits without trailing zeros. */
interface Decimals {
  /** Matches the strings with at least one digit. */
  readonly nonEmpty: RegexExpression;
  /** Whether the range contains zero, whose string is empty. */
  readonly hasZero: boolean;
}

/**
 * Matches the strings of digits from low to high, which have the same length, without trailing
 * zeros.
 */
function decimalsBetween(low: string, high: string): Decimals {
  if (low === "") return { nonEmpty: NO_MATCH, hasZero: true };
  const rest = low.length - 1;
  const [zeros, nines] = ["0".repeat(rest), "9".repeat(rest)];
  if (low[0] === high[0]) return prependDigit(low[0], low[0], decimalsBetween(low.slice(1), high.slice(1)));
  const anyDecimals = {
    nonEmpty: sequence([repetition(digit("0", "9"), 0, Math.max(0, rest - 1)), digit("1", "9")]),
    hasZero: true,
  };
  const parts = [
    prependDigit(low[0], low[0], decimalsBetween(low.slice(1), nines)),
    prependDigit(shiftDigit(low[0], 1), shiftDigit(high[0], -1), rest === 0 ? decimalsBetween("", "") : anyDecimals),
    prependDigit(high[0], high[0], decimalsBetween(zeros, high.slice(1))),
  ];
  return {
    nonEmpty: alternatives(parts.map(({ nonEmpty }) => nonEmpty)),
    hasZero: parts.some(({ hasZero }) => hasZero),
  };
}

/** Prepends a digit of a range, which contains zero only as its single digit, to decimals. */
function prependDigit(first: string, last: string, { nonEmpty, hasZero }: Decimals): Decimals {
  const isZero = first === "0";
  return {
    nonEmpty: sequence([digit(first, last), alternatives([nonEmpty, hasZero && !isZero ? EMPTY_TEXT : NO_MATCH])]),
    hasZero: hasZero && isZero,
  };
}

/** Matches a digit of a range; nothing if the range is empty. */
function digit(first: string, last: string): RegexExpression {
  const [from, to] = [first, last].map((text) => text.charCodeAt(0));
  return characters(from > to ? [] : [[from, to]]);
}

const shiftDigit = (character: string, by: number) => String.fromCharCode(character.charCodeAt(0) + by);
