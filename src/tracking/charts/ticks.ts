/** A stretch of an axis. */
export interface Range {
  readonly low: number;
  readonly high: number;
}

/** Steps of round numbers: 1, 2 or 5 times a power of ten. */
const ROUND_STEPS = [1, 2, 5, 10];

/** The round step that cuts `range` into at most `count` pieces. */
function roundStep({ low, high }: Range, count: number): number {
  const least = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(least));
  const factor = ROUND_STEPS.find((candidate) => candidate * power >= least * (1 - 1e-9)) ?? 10;
  return factor * power;
}

/** A stretch and the round numbers in it, evenly spaced. */
export interface Axis extends Range {
  readonly ticks: readonly number[];
}

/** An axis that is exactly `range`, with at most `count` + 1 ticks. */
export function exactAxis(range: Range, count: number): Axis {
  const wide = widened(range);
  return { ...wide, ticks: multiples(wide, roundStep(wide, count)) };
}

/** An axis that holds `range` and ends at ticks, of which there are at most `count` + 2. */
export function roundedAxis(range: Range, count: number): Axis {
  const wide = widened(range);
  const step = roundStep(wide, count);
  const ends = { low: Math.floor(wide.low / step + 1e-9) * step, high: Math.ceil(wide.high / step - 1e-9) * step };
  const ticks = multiples(ends, step);
  return { low: ticks[0], high: ticks[ticks.length - 1], ticks };
}

function multiples({ low, high }: Range, step: number): number[] {
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  const decimals = Math.max(0, -Math.floor(Math.log10(step)));
  // Adding 0 makes 0 of -0.
  return Array.from({ length: last - first + 1 }, (_, index) => Number(((first + index) * step).toFixed(decimals)) + 0);
}

/** A range of one value gets room on both sides. */
function widened({ low, high }: Range): Range {
  if (high > low) return { low, high };
  const room = low === 0 ? 1 : Math.abs(low) / 2;
  return { low: low - room, high: low + room };
}

/** A tick as text: 0.05, 20, 5k, 1.5M; all ticks of an axis with as many decimals. */
export function tickLabels(ticks: readonly number[]): string[] {
  const largest = Math.max(...ticks.map(Math.abs));
  const [unit, suffix] = largest >= 1e6 ? [1e6, "M"] : largest >= 1e4 ? [1e3, "k"] : [1, ""];
  const scaled = ticks.map((tick) => tick / unit);
  const decimals = Math.max(...scaled.map(decimalsOf));
  return scaled.map((tick) => (tick === 0 ? "0" : `${withMinus(tick.toFixed(decimals))}${suffix}`));
}

function decimalsOf(value: number): number {
  return Number(value.toPrecision(10)).toString().split(/[.e]/)[1]?.length ?? 0;
}

/** The minus sign is as wide as the digits, and does not look like a hyphen. */
function withMinus(text: string): string {
  return text.replace("-", "\u2212");
}
