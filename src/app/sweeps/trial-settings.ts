import { invalidArgument } from "../../core/settings.js";
import type { RandomStream } from "../../core/random/random-stream.js";
import { stream } from "../../core/random/streams.js";
import {
  isList,
  isInteger,
  type Dimension,
  type SearchRange,
  type SearchSpace,
  type SettingValue,
} from "./search-space.js";

/** The searched settings of a trial. */
export type TrialSettings = Readonly<Record<string, SettingValue>>;

/** More trials than this are taken for a mistake. */
export const MAX_TRIALS = 10_000;

/** Draws of a trial until it is one that there was not before. */
const MAX_DRAW_ATTEMPTS = 1000;

/**
 * Every combination of the values, the last setting changing fastest. Throws INVALID_ARGUMENT for a range that does not say how
 * many points it has, and for more combinations than anyone tries.
 */
export function enumerateGrid(search: SearchSpace): TrialSettings[] {
  const axes = Object.entries(search).map(([name, dimension]) => [name, enumerateValues(name, dimension)] as const);
  const count = axes.reduce((product, [, values]) => product * values.length, 1);
  if (count > MAX_TRIALS)
    throw invalidArgument(
      `The grid has ${count} combinations, more than ${MAX_TRIALS}. Leave values out, or search at random.`,
    );
  return axes.reduce<TrialSettings[]>(
    (trials, [name, values]) => trials.flatMap((trial) => values.map((value) => ({ ...trial, [name]: value }))),
    [{}],
  );
}

/**
 * Independent draws, no two alike: of a list each value is as probable, of a range each number, on a log scale each order of
 * magnitude (Bergstra & Bengio 2012). A trial's draw hangs on the seed and on its number alone, so that more trials begin with
 * those of fewer. Throws INVALID_ARGUMENT where there are not as many combinations.
 */
export function sampleTrials(search: SearchSpace, count: number, seed: number): TrialSettings[] {
  const trials: TrialSettings[] = [];
  const seen = new Set<string>();
  for (let number = 0; number < count; number++) {
    const trial = sampleNewTrial(search, stream(seed, "sweepDraws", number), seen);
    if (trial === undefined) {
      throw invalidArgument(
        `There are hardly more than ${number} combinations of the values to try, and ${count} trials are asked for. ` +
          `Ask for fewer, or try all of them with the method grid.`,
      );
    }
    trials.push(trial);
  }
  return trials;
}

function sampleNewTrial(search: SearchSpace, random: RandomStream, seen: Set<string>): TrialSettings | undefined {
  for (let attempt = 0; attempt < MAX_DRAW_ATTEMPTS; attempt++) {
    const trial = Object.fromEntries(
      Object.entries(search).map(([name, dimension]) => [name, sampleValue(name, dimension, random)]),
    );
    const key = JSON.stringify(trial);
    if (seen.has(key)) continue;
    seen.add(key);
    return trial;
  }
}

function sampleValue(name: string, dimension: Dimension, random: RandomStream): SettingValue {
  if (isList(dimension)) return dimension[random.integers(dimension.length)];
  const { min, max, scale } = dimension;
  if (isInteger(name)) {
    if (scale !== "log") return random.integers(min, max + 1);
    return Math.min(max, Math.floor(sampleLogUniform(min, max + 1, random)));
  }
  return scale === "log" ? sampleLogUniform(min, max, random) : random.uniform(min, max);
}

function sampleLogUniform(min: number, max: number, random: RandomStream): number {
  // The logarithm and back may end a little outside.
  return Math.min(max, Math.max(min, Math.exp(random.uniform(Math.log(min), Math.log(max)))));
}

function enumerateValues(name: string, dimension: Dimension): readonly SettingValue[] {
  if (isList(dimension)) return dimension;
  const { points } = dimension;
  if (points === undefined) {
    throw invalidArgument(
      `A grid needs to know how many values of ${name} to try: list them, or give the range its points, as in ` +
        `{"min": ${dimension.min}, "max": ${dimension.max}, "points": 3}.`,
    );
  }
  const values = Array.from({ length: points }, (_, i) => interpolateRange(dimension, i / (points - 1)));
  return isInteger(name) ? [...new Set(values.map(Math.round))] : values;
}

/** The number at a share of the range; digits that only rounding made are left out. */
function interpolateRange({ min, max, scale }: SearchRange, fraction: number): number {
  const value = scale === "log" ? min * (max / min) ** fraction : min + (max - min) * fraction;
  return Number(value.toPrecision(12));
}
