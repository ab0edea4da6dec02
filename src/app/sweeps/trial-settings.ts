import { invalidArgument } from "../../core/errors.js";
import type { RandomStream } from "../../core/random/random-stream.js";
import { stream } from "../../core/random/streams.js";
import type { Setting, SettingTable } from "../../core/settings.js";
import { trainSettings } from "../runs/run-settings.js";
import {
  isList,
  isInteger,
  type Dimension,
  type SearchRange,
  type SearchSpace,
  type SettingValue,
} from "./search-space.js";

/** Values of the searched settings. */
export type TrialSettings = Readonly<Record<string, SettingValue>>;

/** Larger sweeps are rejected as a mistake. */
export const MAX_TRIALS = 10_000;

/** Maximum draws to find a combination that is not a duplicate. */
const MAX_DRAW_ATTEMPTS = 1000;

/**
 * Enumerates all combinations; the last setting changes fastest.
 * @throws INVALID_ARGUMENT for a range without a number of points, and for too many combinations.
 */
export function enumerateGrid(search: SearchSpace, settings: SettingTable = trainSettings): TrialSettings[] {
  const axes = Object.entries(search).map(
    ([name, dimension]) => [name, enumerateValues(name, settings[name], dimension)] as const,
  );
  const count = axes.reduce((product, [, values]) => product * values.length, 1);
  if (count > MAX_TRIALS)
    throw invalidArgument(
      `The grid has ${count} combinations, the maximum is ${MAX_TRIALS}. Remove values, or use the method random.`,
    );
  return axes.reduce<TrialSettings[]>(
    (trials, [name, values]) => trials.flatMap((trial) => values.map((value) => ({ ...trial, [name]: value }))),
    [{}],
  );
}

/**
 * Draws distinct combinations (Bergstra & Bengio 2012): uniform over lists and linear ranges,
 * log-uniform over log ranges. A draw depends only on the seed and the trial's number, so a larger
 * sweep starts with the trials of a smaller one.
 * @throws INVALID_ARGUMENT if there are not enough combinations.
 */
export function sampleTrials(
  search: SearchSpace,
  count: number,
  seed: number,
  settings: SettingTable = trainSettings,
): TrialSettings[] {
  const trials: TrialSettings[] = [];
  const seen = new Set<string>();
  for (let number = 0; number < count; number++) {
    const trial = sampleNewTrial(search, settings, stream(seed, "sweepDraws", number), seen);
    if (trial === undefined)
      throw invalidArgument(
        `The search space has about ${number} combinations, fewer than the ${count} trials. ` +
          `Reduce \`trials\`, or use the method grid.`,
      );
    trials.push(trial);
  }
  return trials;
}

function sampleNewTrial(
  search: SearchSpace,
  settings: SettingTable,
  random: RandomStream,
  seen: Set<string>,
): TrialSettings | undefined {
  for (let attempt = 0; attempt < MAX_DRAW_ATTEMPTS; attempt++) {
    const trial = Object.fromEntries(
      Object.entries(search).map(([name, dimension]) => [name, sampleValue(settings[name], dimension, random)]),
    );
    const key = JSON.stringify(trial);
    if (seen.has(key)) continue;
    seen.add(key);
    return trial;
  }
}

function sampleValue(setting: Setting, dimension: Dimension, random: RandomStream): SettingValue {
  if (isList(dimension)) return dimension[random.integers(dimension.length)];
  const { min, max, scale } = dimension;
  if (isInteger(setting)) {
    if (scale !== "log") return random.integers(min, max + 1);
    return Math.min(max, Math.floor(sampleLogUniform(min, max + 1, random)));
  }
  return scale === "log" ? sampleLogUniform(min, max, random) : random.uniform(min, max);
}

function sampleLogUniform(min: number, max: number, random: RandomStream): number {
  // Rounding of the logarithm may leave the range.
  return Math.min(max, Math.max(min, Math.exp(random.uniform(Math.log(min), Math.log(max)))));
}

function enumerateValues(name: string, setting: Setting, dimension: Dimension): readonly SettingValue[] {
  if (isList(dimension)) return dimension;
  const { points } = dimension;
  if (points === undefined)
    throw invalidArgument(
      `A grid needs the values of ${name}: list them, or set the range's number of points, as in ` +
        `{"min": ${dimension.min}, "max": ${dimension.max}, "points": 3}.`,
    );
  const values = Array.from({ length: points }, (_, i) => interpolateRange(dimension, i / (points - 1)));
  return isInteger(setting) ? [...new Set(values.map(Math.round))] : values;
}

/** Returns the number at a fraction of the range, without rounding noise. */
function interpolateRange({ min, max, scale }: SearchRange, fraction: number): number {
  const value = scale === "log" ? min * (max / min) ** fraction : min + (max - min) * fraction;
  return Number(value.toPrecision(12));
}
