import { formatNumber } from "../../../core/format.js";

export interface AxisRange {
  readonly low: number;
  readonly high: number;
}

/** As wide as a digit, unlike the hyphen. */
const MINUS = "\u2212";

/**
 * Numbers above leave gaps in curves, as infinite ones do: sums and differences of ticks stay
 * finite.
 */
const MAX_DRAWN = 1e100;
/** Distances below are drawn as 0. */
const MIN_DRAWN = 1e-30;

/** Whether a chart has a place for a number. */
export const isDrawable = (value: number | undefined): value is number =>
  value !== undefined && Math.abs(value) <= MAX_DRAWN;

/** Tick distances are 1, 2 or 5 times a power of ten. */
const ROUND_STEPS = [1, 2, 5, 10];

/** Returns the tick distance that splits `range` into at most `count` intervals. */
function chooseRoundStep({ low, high }: AxisRange, count: number): number {
  const minStep = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(minStep));
  const factor = ROUND_STEPS.find((candidate) => candidate * power >= minStep * (1 - 1e-9)) ?? 10;
  return factor * power;
}

/** A range and its evenly spaced ticks. */
export interface Axis extends AxisRange {
  readonly ticks: readonly number[];
}

/** Creates an axis that covers exactly `range`, with at most `count` + 1 ticks. */
export function createExactAxis(range: AxisRange, count: number): Axis {
  const wide = widenRange(range);
  return { ...wide, ticks: listMultiples(wide, chooseRoundStep(wide, count)) };
}

/**
 * Creates an axis that contains `range` and ends at ticks, of which there are at most `count` + 2.
 */
export function createRoundedAxis(range: AxisRange, count: number): Axis {
  const wide = widenRange(range);
  const step = chooseRoundStep(wide, count);
  const ends = { low: Math.floor(wide.low / step + 1e-9) * step, high: Math.ceil(wide.high / step - 1e-9) * step };
  const ticks = listMultiples(ends, step);
  return { low: ticks[0], high: ticks[ticks.length - 1], ticks };
}

function listMultiples({ low, high }: AxisRange, step: number): number[] {
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  const decimals = Math.max(0, -Math.floor(Math.log10(step)));
  // Adding 0 turns -0 into 0.
  return Array.from({ length: last - first + 1 }, (_, index) => Number(((first + index) * step).toFixed(decimals)) + 0);
}

/** Widens a range of a single value, or of values that differ by rounding. */
function widenRange({ low, high }: AxisRange): AxisRange {
  if (high - low > Math.max(MIN_DRAWN, 1e-12 * Math.max(Math.abs(low), Math.abs(high)))) return { low, high };
  const room = Math.abs(low) < MIN_DRAWN ? 1 : Math.abs(low) / 2;
  return { low: low - room, high: low + room };
}

/** Formats ticks (0.05, 20, 5k, 1.5M, 2e15), all with the same number of decimals. */
export function formatTickLabels(ticks: readonly number[]): string[] {
  const largest = Math.max(...ticks.map(Math.abs));
  if (largest >= 1e12 || largest < 1e-6) return ticks.map((tick) => formatNumber(tick).replaceAll("-", MINUS));
  const [unit, suffix] = largest >= 1e6 ? [1e6, "M"] : largest >= 1e4 ? [1e3, "k"] : [1, ""];
  const scaled = ticks.map((tick) => tick / unit);
  const decimals = Math.max(...scaled.map(countDecimals));
  return scaled.map((tick) => (tick === 0 ? "0" : `${tick.toFixed(decimals).replace("-", MINUS)}${suffix}`));
}

function countDecimals(value: number): number {
  return Number(value.toPrecision(10)).toString().split(/[.e]/)[1]?.length ?? 0;
}
