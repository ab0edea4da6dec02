import {
  invalid,
  resolveSettings,
  unknownSetting,
  type SettingTable,
  type Settings,
} from "../../algorithms/shared/settings.js";
import { MEAN_RETURN } from "../../tracking/index.js";
import { runSettings, trainSettings, type TrainOptions } from "../settings.js";
import { byOwnNames, isListed, resolveSearch, type Dimension, type SearchSpace } from "./search-space.js";
import { MOST_TRIALS } from "./trial-settings.js";

const OURS = "ours";

/** The metric that is the mean return of greedy play after training; others are those of metrics.jsonl. */
export const GREEDY = "greedy";

/** How a sweep searches and compares. */
export const sweepSettings = {
  method: {
    default: undefined,
    choices: ["grid", "random", "halving"],
    description:
      "try every combination, random ones, or random ones of which the best train on (successive halving); unless given, grid where all values are listed and no number of trials is given, else random",
    source: "Bergstra & Bengio 2012; Jamieson & Talwalkar 2016",
  },
  trials: {
    default: undefined,
    integer: true,
    min: 1,
    max: MOST_TRIALS,
    description: "combinations that random and halving try; 9 unless given",
    source: OURS,
  },
  searchSeed: {
    default: 0,
    integer: true,
    min: 0,
    description: "decides the random combinations",
    source: OURS,
  },
  metric: {
    text: true,
    default: MEAN_RETURN,
    description: `what trials are compared by: a number that every update records, or ${GREEDY} for the mean return of greedy play after training`,
    source: OURS,
  },
  goal: {
    default: "maximize",
    choices: ["maximize", "minimize"],
    description: "whether more of the metric is better, or less",
    source: OURS,
  },
  metricUpdates: {
    default: 1,
    integer: true,
    min: 1,
    description: "the mean of the metric over so many last updates is compared",
    source: OURS,
  },
  evalEpisodes: {
    default: 1000,
    integer: true,
    min: 1,
    description: `episodes of greedy play, where the metric is ${GREEDY}`,
    source: OURS,
  },
  evalSeed: {
    default: 0,
    integer: true,
    min: 0,
    description: "decides the starts of these episodes, which are the same for all trials",
    source: OURS,
  },
  reduction: {
    default: 3,
    integer: true,
    min: 2,
    description: "halving: one of so many trials trains on",
    source: "Li et al. 2018 (Hyperband)",
  },
  rungs: {
    default: undefined,
    integer: true,
    min: 1,
    description: "halving: how often trials are compared; until one is left, unless given",
    source: OURS,
  },
} as const satisfies SettingTable;

/** A sweep as a user writes it; what is not given has the defaults of `sweepSettings`. */
export interface SweepOptions extends Partial<Settings<typeof sweepSettings>> {
  readonly env: string;
  readonly envOptions?: Readonly<Record<string, unknown>>;
  /** Settings that all trials share. */
  readonly train?: Partial<Omit<TrainOptions, "env" | "envOptions" | "seed" | "evalEpisodes">>;
  /** What is tried: by settings' names lists, ranges, or the short form of either. */
  readonly search: Readonly<Record<string, Dimension | string>>;
  /** Each trial is trained with each of them; a number n means 1 to n. Default 1. */
  readonly seeds?: number | readonly number[];
}

/** Settings that only some sweeps have. */
type Conditional = "trials" | "searchSeed" | "reduction" | "rungs" | "evalEpisodes" | "evalSeed" | "metricUpdates";

/** A sweep, all decided; what sweep.json in its folder holds. Settings that its method or metric has no use for are undefined. */
export interface SweepConfig
  extends
    Omit<Settings<typeof sweepSettings>, Conditional>,
    Partial<Pick<Settings<typeof sweepSettings>, Conditional>> {
  readonly env: string;
  readonly envOptions: Readonly<Record<string, unknown>>;
  readonly train: Readonly<Record<string, unknown>>;
  readonly search: SearchSpace;
  readonly seeds: readonly number[];
}

type Choice = Pick<SweepConfig, "method" | "metric">;

/** Which sweeps have them. */
const CONDITIONS: readonly {
  readonly names: readonly Conditional[];
  readonly isOf: (choice: Choice) => boolean;
  readonly whose: string;
}[] = [
  {
    names: ["trials", "searchSeed"],
    isOf: ({ method }) => method !== "grid",
    whose: "the methods random and halving (a grid has as many trials as combinations)",
  },
  { names: ["reduction", "rungs"], isOf: ({ method }) => method === "halving", whose: "the method halving" },
  { names: ["evalEpisodes", "evalSeed"], isOf: ({ metric }) => metric === GREEDY, whose: `the metric ${GREEDY}` },
  {
    names: ["metricUpdates"],
    isOf: ({ metric }) => metric !== GREEDY,
    whose: "metrics that updates record",
  },
];

/** Trials where nothing says how many: three rungs of halving. */
const DEFAULT_TRIALS = 9;
const MOST_SEEDS = 1000;

/** Settings that are the sweep's, not a trial's, and what to do instead. */
const NOT_OF_A_TRIAL: Readonly<Record<string, string>> = {
  seed: "give the sweep its seeds",
  evalEpisodes: `give the sweep its evalEpisodes, with the metric ${GREEDY}`,
};

/**
 * A sweep's settings, all decided. Names may be written in any case: search-seed, searchSeed. Throws INVALID_ARGUMENT for unknown
 * names, with the nearest known one, for values out of range, and for a setting that is both fixed and searched.
 */
export function resolveSweep(options: SweepOptions): SweepConfig {
  const { env, envOptions = {}, train = {}, search, seeds = 1, ...given } = withOwnNames(options);
  const fixed = resolveFixed(train);
  const searched = resolveSearch(search);
  const settings = resolveScalars(given, searched);
  const both = Object.keys(searched).find((name) => Object.hasOwn(fixed, name));
  if (both !== undefined) throw invalid(`${both} is both searched and fixed in train. Leave it out of one.`);
  if (settings.method === "halving") checkOneLength(searched);
  return { env, envOptions, ...settings, train: fixed, search: searched, seeds: resolveSeeds(seeds) };
}

function resolveScalars(
  given: Partial<Settings<typeof sweepSettings>>,
  search: SearchSpace,
): Omit<SweepConfig, "env" | "envOptions" | "train" | "search" | "seeds"> {
  const settings = resolveSettings("A sweep", sweepSettings, given);
  const isGrid = settings.trials === undefined && Object.values(search).every(isListed);
  const all = { ...settings, method: settings.method ?? (isGrid ? "grid" : "random") };
  const unused = CONDITIONS.filter(({ isOf }) => !isOf(all));
  for (const { names, whose } of unused) {
    const other = names.find((name) => given[name] !== undefined);
    if (other !== undefined) throw invalid(`${other} belongs to ${whose}. Leave it out, or choose that.`);
  }
  const nothing = Object.fromEntries(unused.flatMap(({ names }) => names.map((name) => [name, undefined])));
  return { ...all, trials: all.trials ?? DEFAULT_TRIALS, ...nothing };
}

function withOwnNames(options: SweepOptions): SweepOptions {
  const known = [...Object.keys(sweepSettings), "env", "envOptions", "train", "search", "seeds"];
  const named = byOwnNames("the sweep", options as unknown as Readonly<Record<string, unknown>>);
  const present = Object.entries(named).filter(([, value]) => value !== undefined);
  const unknown = present.find(([name]) => !known.includes(name))?.[0];
  if (unknown !== undefined) {
    if (Object.hasOwn(trainSettings, unknown))
      throw invalid(`${unknown} is a setting of its runs, not of the sweep. Put it into train, or into search.`);
    throw unknownSetting("A sweep", known, unknown);
  }
  const { env, envOptions = {}, train = {}, search = {} } = named;
  if (typeof env !== "string" || env === "") throw invalid("A sweep needs its env, an environment's id.");
  for (const [name, value] of Object.entries({ envOptions, train, search }))
    if (typeof value !== "object" || value === null || Array.isArray(value))
      throw invalid(`A sweep's ${name} must be an object of names and values, not ${JSON.stringify(value)}.`);
  return { ...Object.fromEntries(present), env, search: search as SweepOptions["search"] };
}

/** Throws INVALID_ARGUMENT for names and values that no run has; whether they go together, the trials show. */
function resolveFixed(train: object): Readonly<Record<string, unknown>> {
  const given = Object.entries(byOwnNames("train", train as Readonly<Record<string, unknown>>));
  const fixed = Object.fromEntries(given.filter(([, value]) => value !== undefined && value !== null));
  for (const [name, value] of Object.entries(fixed)) {
    if (Object.hasOwn(NOT_OF_A_TRIAL, name)) throw invalid(`${name} is not a trial's own: ${NOT_OF_A_TRIAL[name]}.`);
    if (!Object.hasOwn(trainSettings, name)) throw unknownSetting("A run", Object.keys(trainSettings), name);
    resolveSettings("A run", { [name]: trainSettings[name] }, { [name]: value as never });
  }
  return fixed;
}

/** Trials are compared when as much of their runs is done, so their runs must be as long. */
function checkOneLength(search: SearchSpace): void {
  const length = ["episodes", "turns"].find((name) => Object.hasOwn(search, name));
  if (length !== undefined)
    throw invalid(`Successive halving decides itself how long a trial is trained, so ${length} cannot be searched.`);
}

function resolveSeeds(seeds: number | readonly number[]): readonly number[] {
  const isCount = typeof seeds === "number";
  const all = isCount
    ? seeds >= 1 && seeds <= MOST_SEEDS
      ? Array.from({ length: seeds }, (_, i) => i + 1)
      : []
    : seeds;
  const isWhole = !isCount || Number.isInteger(seeds);
  if (!isWhole || !Array.isArray(all) || all.length === 0)
    throw invalid(
      `seeds must be a list of seeds, or a number of them from 1 to ${MOST_SEEDS}, not ${JSON.stringify(seeds)}.`,
    );
  for (const seed of all) resolveSettings("A run", { seed: runSettings.seed }, { seed });
  const again = all.find((seed, i) => all.indexOf(seed) < i);
  if (again !== undefined) throw invalid(`seeds has ${again} twice.`);
  return all;
}
