import { invalidArgument } from "../../core/errors.js";
import {
  choice,
  defineSettings,
  integer,
  resolveSettings,
  type Settings,
  type SettingTable,
  text,
  unknownSetting,
} from "../../core/settings.js";
import { MEAN_RETURN } from "../tracking/index.js";
import { loadAlgorithm } from "../runs/load-algorithm.js";
import type { PromptRunOptions } from "../runs/prompt-run-settings.js";
import { MEAN_REWARD } from "../runs/run-curve.js";
import { runSettings, trainSettings, type TrainOptions } from "../runs/run-settings.js";
import {
  findExampleAlgorithm,
  getTrialSettings,
  isOnPrompts,
  normalizeKeys,
  isEnumerable,
  resolveSearchSpace,
  type Dimension,
  type ExampleAlgorithm,
  type ExampleTrialOptions,
  type SearchSpace,
} from "./search-space.js";
import { MAX_TRIALS } from "./trial-settings.js";

/** The metric of an evaluation after training; all other metrics are read from metrics.jsonl. */
export const EVAL_MEAN_RETURN = "eval/mean_return";

/** Settings of search and comparison. */
export const sweepSettings = defineSettings({
  method: choice({
    choices: ["grid", "random", "halving"],
    description:
      "Search method: every combination, random ones, or successive halving of random ones. Default: grid if all values are listed and trials is not given, else random.",
    source: "Bergstra & Bengio 2012; Jamieson & Talwalkar 2016",
  }),
  trials: integer({
    min: 1,
    max: MAX_TRIALS,
    description: "Number of combinations for random and halving. Default: 9.",
  }),
  searchSeed: integer({ default: 0, min: 0, description: "Seed of the random combinations." }),
  metric: text({
    default: MEAN_RETURN,
    description: `Metric that ranks the trials: a metric of the updates, or ${EVAL_MEAN_RETURN}, the mean return of greedy episodes after training.`,
  }),
  goal: choice({
    default: "maximize",
    choices: ["maximize", "minimize"],
    description: "Whether a higher or a lower metric is better.",
  }),
  metricUpdates: integer({ default: 1, min: 1, description: "Number of last updates to average the metric over." }),
  evalEpisodes: integer({
    default: 1000,
    min: 1,
    description: `Number of greedy episodes for the metric ${EVAL_MEAN_RETURN}.`,
  }),
  evalSeed: integer({ default: 0, min: 0, description: "Seed of the evaluation episodes, the same for all trials." }),
  reduction: integer({
    default: 3,
    min: 2,
    description: "Halving: one in this many trials continues after each rung.",
    source: "Li et al. 2018 (Hyperband)",
  }),
  rungs: integer({ min: 1, description: "Halving: number of rungs. Default: until one trial is left." }),
});

/** Options that trials share, without those of the sweep. */
type TrialOwnOptions<Options> = Partial<Omit<Options, "env" | "envOptions" | "seed" | "evalEpisodes">>;

/** Options of a sweep; `sweepSettings` has the defaults. */
export interface SweepOptions extends Partial<Settings<typeof sweepSettings>> {
  /** Omitted for runs on prompts, whose `train` has `data` and `rewardFuncs`. */
  readonly env?: string;
  readonly envOptions?: Readonly<Record<string, unknown>>;
  /** Settings shared by all trials. */
  readonly train?:
    | TrialOwnOptions<TrainOptions>
    | TrialOwnOptions<PromptRunOptions>
    | TrialOwnOptions<ExampleTrialOptions>;
  /** Values to try by setting: lists, ranges, or their short forms. */
  readonly search: Readonly<Record<string, Dimension | string>>;
  /** Seeds of each trial; a number n means 1 to n. Default 1. */
  readonly seeds?: number | readonly number[];
}

/** Settings of particular methods or metrics. */
type ConditionalSetting =
  | "trials"
  | "searchSeed"
  | "reduction"
  | "rungs"
  | "evalEpisodes"
  | "evalSeed"
  | "metricUpdates";

/**
 * The resolved settings of a sweep, as stored in sweep.json; undefined where its method or metric
 * does not use them.
 */
export interface SweepConfig
  extends
    Omit<Settings<typeof sweepSettings>, ConditionalSetting>,
    Partial<Pick<Settings<typeof sweepSettings>, ConditionalSetting>> {
  /** Undefined for runs on prompts. */
  readonly env: string | undefined;
  readonly envOptions: Readonly<Record<string, unknown>>;
  readonly train: Readonly<Record<string, unknown>>;
  readonly search: SearchSpace;
  readonly seeds: readonly number[];
}

type SweepChoice = Pick<SweepConfig, "method" | "metric">;

/** Methods and metrics that use these settings. */
const CONDITIONAL_SETTINGS: readonly {
  readonly names: readonly ConditionalSetting[];
  readonly appliesTo: (choice: SweepChoice) => boolean;
  readonly owner: string;
}[] = [
  {
    names: ["trials", "searchSeed"],
    appliesTo: ({ method }) => method !== "grid",
    owner: "the methods random and halving (a grid has as many trials as combinations)",
  },
  { names: ["reduction", "rungs"], appliesTo: ({ method }) => method === "halving", owner: "the method halving" },
  {
    names: ["evalEpisodes", "evalSeed"],
    appliesTo: ({ metric }) => metric === EVAL_MEAN_RETURN,
    owner: `the metric ${EVAL_MEAN_RETURN}`,
  },
  {
    names: ["metricUpdates"],
    appliesTo: ({ metric }) => metric !== EVAL_MEAN_RETURN,
    owner: "metrics that updates record",
  },
];

/** Enough for three rungs of halving. */
const DEFAULT_TRIALS = 9;
const MAX_SEEDS = 1000;

/** Settings that belong to the sweep, not to a trial, with advice. */
const RUN_ONLY_SETTINGS: Readonly<Record<string, string>> = {
  seed: "give the sweep its seeds",
  evalEpisodes: `give the sweep its evalEpisodes, with the metric ${EVAL_MEAN_RETURN}`,
};

/**
 * Resolves the settings of a sweep. Names may be camel, kebab or snake case.
 * @throws INVALID_ARGUMENT for unknown names, suggesting the nearest one, for values out of range,
 * and for a setting that is both fixed and searched.
 */
export function resolveSweepConfig(options: SweepOptions): SweepConfig {
  const { env, envOptions = {}, train = {}, search, seeds = 1, ...given } = normalizeOptions(options);
  const table = getTrialSettings(train, search);
  const fixed = resolveFixed(train, table);
  const searched = resolveSearchSpace(search, table);
  const settings = resolveScalars(given, searched, train);
  const duplicate = Object.keys(searched).find((name) => Object.hasOwn(fixed, name));
  if (duplicate !== undefined) throw invalidArgument(`${duplicate} is both searched and fixed in train. Remove one.`);
  if (settings.method === "halving") checkLengthNotSearched(searched);
  return { env, envOptions, ...settings, train: fixed, search: searched, seeds: resolveSeeds(seeds) };
}

/**
 * Loads the algorithms of a sweep that are modules and replaces their names by absolute paths.
 * @throws as `loadAlgorithm`
 */
export async function loadSweepAlgorithms(options: SweepOptions): Promise<SweepOptions> {
  const { train, search } = options;
  const fixed = train?.algorithm;
  const searched: unknown = (search as SweepOptions["search"] | undefined)?.algorithm;
  const names = typeof searched === "string" ? searched.split(",") : searched;
  const load = async (name: unknown) => (typeof name === "string" ? loadAlgorithm(name.trim()) : name);
  return {
    ...options,
    ...(typeof fixed === "string" ? { train: { ...train, algorithm: await loadAlgorithm(fixed) } } : {}),
    ...(Array.isArray(names)
      ? { search: { ...search, algorithm: (await Promise.all(names.map(load))) as Dimension } }
      : {}),
  };
}

function resolveScalars(
  given: Partial<Settings<typeof sweepSettings>>,
  search: SearchSpace,
  train: object,
): Omit<SweepConfig, "env" | "envOptions" | "train" | "search" | "seeds"> {
  const onPrompts = isOnPrompts(train);
  const example = onPrompts ? findExampleAlgorithm(train) : undefined;
  const comparison = example === undefined ? {} : exampleComparison(example, train);
  const metric = given.metric ?? comparison.metric ?? (onPrompts ? MEAN_REWARD : sweepSettings.metric.default);
  const goal = given.goal ?? (metric === comparison.metric ? comparison.goal : undefined);
  const settings = resolveSettings("A sweep", sweepSettings, { ...given, metric, ...(goal && { goal }) });
  if (onPrompts && metric === EVAL_MEAN_RETURN)
    throw invalidArgument(
      `Runs on a file have no \`${EVAL_MEAN_RETURN}\`. Compare them by \`${comparison.metric ?? MEAN_REWARD}\`.`,
    );
  const isGrid = settings.trials === undefined && Object.values(search).every(isEnumerable);
  const resolved = { ...settings, method: settings.method ?? (isGrid ? "grid" : "random") };
  const unused = CONDITIONAL_SETTINGS.filter(({ appliesTo }) => !appliesTo(resolved));
  for (const { names, owner } of unused) {
    const misplaced = names.find((name) => given[name] !== undefined);
    if (misplaced !== undefined)
      throw invalidArgument(`${misplaced} is a setting of ${owner}. Remove it, or choose that.`);
  }
  const cleared = Object.fromEntries(unused.flatMap(({ names }) => names.map((name) => [name, undefined])));
  return { ...resolved, trials: resolved.trials ?? DEFAULT_TRIALS, ...cleared };
}

/** Returns what ranks runs on examples: the loss, on evaluation examples if there are some. */
function exampleComparison(
  algorithm: ExampleAlgorithm,
  { evalData, evalSplit }: { readonly evalData?: unknown; readonly evalSplit?: unknown },
): { readonly metric?: string; readonly goal?: "minimize" } {
  const isEvaluated = evalData !== undefined || Number(evalSplit ?? 0) > 0;
  return { metric: `${algorithm}/${isEvaluated ? "eval_loss" : "loss"}`, goal: "minimize" };
}

function normalizeOptions(options: SweepOptions): SweepOptions {
  const known = [...Object.keys(sweepSettings), "env", "envOptions", "train", "search", "seeds"];
  const normalized = normalizeKeys("the sweep", options as unknown as Readonly<Record<string, unknown>>);
  const present = Object.entries(normalized).filter(([, value]) => value !== undefined);
  const unknown = present.find(([name]) => !known.includes(name))?.[0];
  if (unknown !== undefined) {
    if (Object.hasOwn(trainSettings, unknown))
      throw invalidArgument(`${unknown} is a setting of runs, not of the sweep. Move it to train or search.`);
    throw unknownSetting("A sweep", known, unknown);
  }
  const { env, envOptions = {}, train = {}, search = {} } = normalized;
  if (env !== undefined && isOnPrompts(train as object))
    throw invalidArgument("A sweep has `env`, or `data` of runs on a file. Remove one of them.");
  if (!isOnPrompts(train as object) && (typeof env !== "string" || env === ""))
    throw invalidArgument("A sweep needs `env`, the id of an environment.");
  for (const [name, value] of Object.entries({ envOptions, train, search }))
    if (typeof value !== "object" || value === null || Array.isArray(value))
      throw invalidArgument(`A sweep's ${name} must be an object of names and values, not ${JSON.stringify(value)}.`);
  return { ...Object.fromEntries(present), env: env as string | undefined, search: search as SweepOptions["search"] };
}

/**
 * @throws INVALID_ARGUMENT for unknown names and invalid values; conflicts are found when trials
 * are planned.
 */
function resolveFixed(train: object, settings: SettingTable): Readonly<Record<string, unknown>> {
  const given = Object.entries(normalizeKeys("train", train as Readonly<Record<string, unknown>>));
  const fixed = Object.fromEntries(given.filter(([, value]) => value !== undefined && value !== null));
  for (const [name, value] of Object.entries(fixed)) {
    if (Object.hasOwn(RUN_ONLY_SETTINGS, name))
      throw invalidArgument(`${name} is not a trial's own: ${RUN_ONLY_SETTINGS[name]}.`);
    if (!Object.hasOwn(settings, name)) throw unknownSetting("A run", Object.keys(settings), name);
    resolveSettings("A run", { [name]: settings[name] }, { [name]: value as never });
  }
  return fixed;
}

/** Trials are compared at equal fractions of their runs, so the runs need the same length. */
function checkLengthNotSearched(search: SearchSpace): void {
  const length = ["episodes", "turns", "maxSteps", "numTrainEpochs"].find((name) => Object.hasOwn(search, name));
  if (length !== undefined)
    throw invalidArgument(`Successive halving sets the length of training, so ${length} cannot be searched.`);
}

function resolveSeeds(seeds: number | readonly number[]): readonly number[] {
  const isCount = typeof seeds === "number";
  const list = isCount
    ? seeds >= 1 && seeds <= MAX_SEEDS
      ? Array.from({ length: seeds }, (_, i) => i + 1)
      : []
    : seeds;
  const isValidCount = !isCount || Number.isInteger(seeds);
  if (!isValidCount || !Array.isArray(list) || list.length === 0)
    throw invalidArgument(`seeds must be a list, or a number from 1 to ${MAX_SEEDS}, got ${JSON.stringify(seeds)}.`);
  for (const seed of list) resolveSettings("A run", { seed: runSettings.seed }, { seed });
  const duplicate = list.find((seed, i) => list.indexOf(seed) < i);
  if (duplicate !== undefined) throw invalidArgument(`seeds has ${duplicate} twice.`);
  return list;
}
