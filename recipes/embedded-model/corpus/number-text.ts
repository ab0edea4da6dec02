import type { RandomStream } from "../../../src/tensor/random.js";

/** How numbers are written: digits behind the point, and whether a plus sign stands before what is not negative. */
export interface NumberStyle {
  readonly decimals: number;
  readonly plus: boolean;
}

/** A number as text in a style; what rounds to zero is never negative. */
export function written(value: number, { decimals, plus }: NumberStyle): string {
  const text = value.toFixed(decimals);
  const zero = Number(text) === 0;
  if (text.startsWith("-") && !zero) return text;
  const digits = zero ? (0).toFixed(decimals) : text;
  return plus ? `+${digits}` : digits;
}

/** The value that a number has once it is written. */
export function rounded(value: number, { decimals }: NumberStyle): number {
  const result = Number(value.toFixed(decimals));
  return result === 0 ? 0 : result;
}

export function randomStyle(random: RandomStream): NumberStyle {
  return { decimals: random.choice([0, 1, 2, 2, 3, 3, 3, 4]), plus: random.random() < 0.6 };
}

/** A number between -limit and limit, often a small one: all sizes occur. */
export function spread(random: RandomStream, limit: number): number {
  const scale = random.choice([1, 1, 0.5, 0.2, 0.1, 0.03]);
  return random.uniform(-limit * scale, limit * scale);
}
