import {
  EMPTY_TEXT,
  type Expression,
  NOTHING,
  alternatives,
  characters,
  literal,
  repetition,
  sequence,
} from "../regex/expression.js";

/** The least and greatest value, both allowed; undefined for none. */
export interface Bounds {
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly exclusiveMaximum?: number;
}

/** Every integer up to this is a number of its own in JavaScript. */
const LARGEST_INTEGER = BigInt(Number.MAX_SAFE_INTEGER);

/** Digits behind the point; with nine before it a number has 15, as many as always survive. */
const DECIMALS = 6;
const LARGEST_FRACTION = 10n ** 9n;

const UNIT = 10n ** BigInt(DECIMALS);

/** The integers within bounds, to JavaScript's safe ones; -0 is none. */
export function integersWithin(bounds: Bounds): Expression {
  const [low, high] = limits(bounds, 0, LARGEST_INTEGER);
  return signed(low, high, naturals);
}

/**
 * The numbers within bounds, as decimals without an exponent: integers, and numbers with at most 6 digits behind the point, the
 * last of which is not 0, and at most 9 before it.
 */
export function numbersWithin(bounds: Bounds): Expression {
  const [low, high] = limits(bounds, DECIMALS, LARGEST_FRACTION * UNIT - 1n);
  return alternatives([integersWithin(bounds), signed(low, high, fractions)]);
}

/** The least and the greatest whole multiple of 10^-decimals within bounds, in those units. */
function limits(bounds: Bounds, decimals: number, largest: bigint): [bigint, bigint] {
  const { minimum = -Infinity, maximum = Infinity, exclusiveMinimum = -Infinity, exclusiveMaximum = Infinity } = bounds;
  const lows = [-largest];
  if (minimum > -Infinity) lows.push(-floorUnits(-minimum, decimals));
  if (exclusiveMinimum > -Infinity) lows.push(floorUnits(exclusiveMinimum, decimals) + 1n);
  const highs = [largest];
  if (maximum < Infinity) highs.push(floorUnits(maximum, decimals));
  if (exclusiveMaximum < Infinity) highs.push(-floorUnits(-exclusiveMaximum, decimals) - 1n);
  return [lows.reduce((a, b) => (a > b ? a : b)), highs.reduce((a, b) => (a < b ? a : b))];
}

/** The greatest whole multiple of 10^-decimals that is not above a number as it is written, in those units. */
function floorUnits(value: number, decimals: number): bigint {
  const [, sign, whole, fraction = "", exponent = "0"] = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/.exec(String(value))!;
  const digits = BigInt(sign + whole + fraction);
  const shift = decimals + Number(exponent) - fraction.length;
  if (shift >= 0) return digits * 10n ** BigInt(shift);
  const divisor = 10n ** BigInt(-shift);
  const quotient = digits / divisor;
  return digits % divisor < 0n ? quotient - 1n : quotient;
}

/** Numbers of both signs, from the expression of those that are not negative. */
function signed(low: bigint, high: bigint, magnitudes: (low: bigint, high: bigint) => Expression): Expression {
  const largest = (a: bigint, b: bigint) => (a > b ? a : b);
  return alternatives([
    sequence([literal("-"), magnitudes(largest(1n, -high), -low)]),
    magnitudes(largest(0n, low), high),
  ]);
}

/** The integers from low (at least 0) to high, without leading zeros. */
function naturals(low: bigint, high: bigint): Expression {
  if (low > high) return NOTHING;
  const options: Expression[] = [];
  const longest = String(high).length;
  for (let length = String(low).length; length <= longest; length++) {
    const least = length === 1 ? 0n : 10n ** BigInt(length - 1);
    const most = 10n ** BigInt(length) - 1n;
    options.push(digitsBetween(String(low > least ? low : least), String(high < most ? high : most)));
  }
  return alternatives(options);
}

/** The numbers with something behind the point, from low (at least 0) to high in units. */
function fractions(low: bigint, high: bigint): Expression {
  if (low > high) return NOTHING;
  const [first, last] = [low / UNIT, high / UNIT];
  const [from, to] = [low % UNIT, high % UNIT];
  const withPoint = (whole: Expression, start: bigint, end: bigint) =>
    sequence([whole, literal("."), decimalsBetween(padded(start), padded(end)).written]);
  if (first === last) return withPoint(naturals(first, first), from, to);
  return alternatives([
    withPoint(naturals(first, first), from, UNIT - 1n),
    withPoint(naturals(first + 1n, last - 1n), 0n, UNIT - 1n),
    withPoint(naturals(last, last), 0n, to),
  ]);
}

const padded = (units: bigint) => String(units).padStart(DECIMALS, "0");

/** The strings of digits from low to high, which are as long. */
function digitsBetween(low: string, high: string): Expression {
  if (low === "") return EMPTY_TEXT;
  const rest = low.length - 1;
  const [least, most] = ["0".repeat(rest), "9".repeat(rest)];
  if (low[0] === high[0]) return sequence([digit(low[0], low[0]), digitsBetween(low.slice(1), high.slice(1))]);
  if (low.slice(1) === least && high.slice(1) === most)
    return sequence([digit(low[0], high[0]), repetition(digit("0", "9"), rest, rest)]);
  return alternatives([
    sequence([digit(low[0], low[0]), digitsBetween(low.slice(1), most)]),
    sequence([digit(next(low[0], 1), next(high[0], -1)), repetition(digit("0", "9"), rest, rest)]),
    sequence([digit(high[0], high[0]), digitsBetween(least, high.slice(1))]),
  ]);
}

/** Strings of digits without the zeros at their end. */
interface Decimals {
  /** Those with a digit left. */
  readonly written: Expression;
  /** Whether one of them is of zeros only. */
  readonly hasZero: boolean;
}

/** The strings of digits from low to high, which are as long, without the zeros at their end. */
function decimalsBetween(low: string, high: string): Decimals {
  if (low === "") return { written: NOTHING, hasZero: true };
  const rest = low.length - 1;
  const [least, most] = ["0".repeat(rest), "9".repeat(rest)];
  if (low[0] === high[0]) return behind(low[0], low[0], decimalsBetween(low.slice(1), high.slice(1)));
  const any = {
    written: sequence([repetition(digit("0", "9"), 0, Math.max(0, rest - 1)), digit("1", "9")]),
    hasZero: true,
  };
  const parts = [
    behind(low[0], low[0], decimalsBetween(low.slice(1), most)),
    behind(next(low[0], 1), next(high[0], -1), rest === 0 ? decimalsBetween("", "") : any),
    behind(high[0], high[0], decimalsBetween(least, high.slice(1))),
  ];
  return {
    written: alternatives(parts.map(({ written }) => written)),
    hasZero: parts.some(({ hasZero }) => hasZero),
  };
}

/** A digit of a range (which holds no zero beside others), with decimals behind it. */
function behind(first: string, last: string, { written, hasZero }: Decimals): Decimals {
  const isZero = first === "0";
  return {
    written: sequence([digit(first, last), alternatives([written, hasZero && !isZero ? EMPTY_TEXT : NOTHING])]),
    hasZero: hasZero && isZero,
  };
}

/** A digit of a range; nothing where the range is empty. */
function digit(first: string, last: string): Expression {
  const [from, to] = [first, last].map((text) => text.charCodeAt(0));
  return characters(from > to ? [] : [[from, to]]);
}

const next = (character: string, by: number) => String.fromCharCode(character.charCodeAt(0) + by);
