import type { RandomStream } from "../../../src/core/random/random-stream.js";

/**
 * How numbers are written: digits behind the point, and whether a plus sign stands before what is
 * not negative.
 */
export interface NumberStyle {
  readonly decimals: number;
  readonly plus: boolean;
}

export const INTEGER_STYLE: NumberStyle = { decimals: 0, plus: false };

/** A number as text in a style; what rounds to zero is never negative. */
export function formatNumber(value: number, { decimals, plus }: NumberStyle): string {
  const text = value.toFixed(decimals);
  const zero = Number(text) === 0;
  if (text.startsWith("-") && !zero) return text;
  const digits = zero ? (0).toFixed(decimals) : text;
  return plus ? `+${digits}` : digits;
}

/** The value that a number has once it is written. */
export function roundToStyle(value: number, { decimals }: NumberStyle): number {
  const result = Number(value.toFixed(decimals));
  return result === 0 ? 0 : result;
}

/** A written number with fewer decimals; a half goes away from zero, as one rounds by hand. */
export function roundHalfAwayFromZero(text: string, decimals: number): number {
  const value = Number(text);
  return (Math.sign(value) * Math.round(Math.abs(value) * 10 ** decimals + 1e-9)) / 10 ** decimals;
}

export function drawStyle(random: RandomStream): NumberStyle {
  return { decimals: random.choice([0, 1, 2, 2, 3, 3, 3, 4]), plus: random.random() < 0.6 };
}

/** A number between -limit and limit, often a small one: all sizes occur. */
export function drawSpread(random: RandomStream, limit: number): number {
  const scale = random.choice([1, 1, 0.5, 0.2, 0.1, 0.03]);
  return random.uniform(-limit * scale, limit * scale);
}

export function signWord(value: number): string {
  return value > 0 ? "positive" : value < 0 ? "negative" : "zero";
}

export function sideWord(value: number, bound: number): string {
  return value > bound ? "above" : value < bound ? "below" : "equal";
}

const SIZES = [
  [0.01, "tiny"],
  [0.1, "small"],
  [1, "medium"],
  [10, "large"],
  [Infinity, "huge"],
] as const;

/** Sizes without sign: below 0.01 tiny, 0.1 small, 1 medium, 10 large, else huge. */
export function sizeWord(value: number): string {
  return SIZES.find(([bound]) => Math.abs(value) < bound)![1];
}
