/** A stretch of an axis. */
export interface AxisRange {
  readonly low: number;
  readonly high: number;
}

/** Steps of round numbers: 1, 2 or 5 times a power of ten. */
const ROUND_STEPS = [1, 2, 5, 10];

/** The round step that cuts `range` into at most `count` pieces. */
function chooseRoundStep({ low, high }: AxisRange, count: number): number {
  const minStep = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(minStep));
  const factor = ROUND_STEPS.find((candidate) => candidate * power >= minStep * (1 - 1e-9)) ?? 10;
  return factor * power;
}

/** A stretch and the round numbers in it, evenly spaced. */
export interface Axis extends AxisRange {
  readonly ticks: readonly number[];
}

/** An axis that is exactly `range`, with at most `count` + 1 ticks. */
export function createExactAxis(range: AxisRange, count: number): Axis {
  const wide = widenRange(range);
  return { ...wide, ticks: listMultiples(wide, chooseRoundStep(wide, count)) };
}

/** An axis that holds `range` and ends at ticks, of which there are at most `count` + 2. */
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
  // Adding 0 makes 0 of -0.
  return Array.from({ length: last - first + 1 }, (_, index) => Number(((first + index) * step).toFixed(decimals)) + 0);
}

/** A range of one value gets room on both sides. */
function widenRange({ low, high }: AxisRange): AxisRange {
  if (high > low) return { low, high };
  const room = low === 0 ? 1 : Math.abs(low) / 2;
  return { low: low - room, high: low + room };
}

/** A tick as text: 0.05, 20, 5k, 1.5M; all ticks of an axis with as many decimals. */
export function formatTickLabels(ticks: readonly number[]): string[] {
  const largest = Math.max(...ticks.map(Math.abs));
  const [unit, suffix] = largest >= 1e6 ? [1e6, "M"] : largest >= 1e4 ? [1e3, "k"] : [1, ""];
  const scaled = ticks.map((tick) => tick / unit);
  const decimals = Math.max(...scaled.map(countDecimals));
  return scaled.map((tick) => (tick === 0 ? "0" : `${replaceHyphen(tick.toFixed(decimals))}${suffix}`));
}

function countDecimals(value: number): number {
  return Number(value.toPrecision(10)).toString().split(/[.e]/)[1]?.length ?? 0;
}

/** The minus sign is as wide as the digits, and does not look like a hyphen. */
function replaceHyphen(text: string): string {
  return text.replace("-", "\u2212");
}
