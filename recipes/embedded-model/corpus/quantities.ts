import type { RandomStream } from "../../../src/core/random/random-stream.js";
import { drawStyle, roundToStyle, drawSpread, formatNumber, type NumberStyle } from "./number-text.js";

/** A number that a text tells, under a name: "the pole angle" is "+0.042". */
export interface Quantity {
  readonly name: string;
  readonly value: number;
  /** The value as it is written. */
  readonly text: string;
  readonly range: Range;
  readonly style: NumberStyle;
}

/** Between which numbers a quantity's values lie. */
export type Range = readonly [low: number, high: number];

export function makeQuantity(name: string, value: number, range: Range, style: NumberStyle): Quantity {
  return { name, value, range, style, text: formatNumber(value, style) };
}

/** Sizes of numbers that are worth so many decimals. */
const LIMITS: readonly (readonly number[])[] = [
  [10, 21, 100],
  [1, 3, 10, 100],
  [0.3, 1, 3, 10],
  [0.1, 1, 3],
  [0.1, 1],
];

/** A style, and numbers between which values in it differ. */
export function drawScale(random: RandomStream): { readonly style: NumberStyle; readonly limit: number } {
  const style = drawStyle(random);
  return { style, limit: random.choice(LIMITS[style.decimals]) };
}

/** Numbers of one style that are their own names. */
export function drawUnnamedNumbers(count: number, random: RandomStream): Quantity[] {
  const { style, limit } = drawScale(random);
  return Array.from({ length: count }, () => {
    const value = roundToStyle(drawSpread(random, limit), style);
    return makeQuantity(formatNumber(value, style), value, [-limit, limit], style);
  });
}

/** A name without its article. */
export function shortName({ name }: Quantity): string {
  return name.replace(/^the /, "");
}

/** Two different quantities. */
export function drawPair(quantities: readonly Quantity[], random: RandomStream): readonly [Quantity, Quantity] {
  const [first, second] = random.sampleIndices(quantities.length, 2);
  return [quantities[first], quantities[second]];
}
