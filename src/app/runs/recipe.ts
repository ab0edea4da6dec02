import { readdir } from "node:fs/promises";
import { existsSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { invalidArgument } from "../../core/errors.js";
import { mean } from "../../core/numbers.js";
import { suggestNames } from "../../core/suggest.js";
import { findSpec } from "../../envs/index.js";
import { readJson, writeJson } from "../../core/files/json-file.js";
import { withLock } from "../../core/files/with-lock.js";
import { writeFileAtomic } from "../../core/files/write-file-atomic.js";
import type { JsonObject } from "../../core/json.js";
import { EMBEDDED_MODEL } from "../../models/index.js";
import type { ExactEvaluations } from "../../rl/train/index.js";
import { computeSeedBand, MEAN_RETURN, readMetricCurve, renderLearningCurve } from "../tracking/index.js";
import type { TrainOptions } from "./run-settings.js";

/** The config.json of a recipe. */
interface RecipeConfig {
  /** Title of the curve. */
  readonly task: string;
  readonly train: TrainOptions;
  readonly seeds: readonly number[];
  /** Settings added to those of `train`, by variant name. */
  readonly variants?: Readonly<Record<string, Partial<TrainOptions>>>;
  /** Episodes of the greedy evaluation at the end. */
  readonly evalEpisodes: number;
  /** Seed of the evaluation's episodes; not one of training. */
  readonly evalSeed: number;
  /** Whether the sampled policy, that of training, is evaluated in addition to the greedy one. */
  readonly evalSampled?: boolean;
  /**
   * Options of the evaluation's environment that differ from those of training, such as its reward.
   */
  readonly evalEnvOptions?: TrainOptions["envOptions"];
  /**
   * Mean return during training whose first episode is reported; the curve is then over episodes.
   */
  readonly target?: number;
  /**
   * Known values to draw, by name. "random actions" and "best known" replace those of the
   * environment's id, where `train` gives it other options.
   */
  readonly references?: Readonly<Record<string, number>>;
  /** Metric of the curve. Default: the mean return while training. */
  readonly curve?: string;
  /** Other metrics that are drawn over the updates, each in a picture of its name. */
  readonly plots?: readonly string[];
}

/** A published learning result that can be run again. */
export interface Recipe extends RecipeConfig {
  readonly name: string;
  readonly folder: string;
  /** Returns to compare with, by name. */
  readonly references: Readonly<Record<string, number>>;
  /** Names of the variants; undefined for the only one of a recipe without. */
  readonly variantNames: readonly (string | undefined)[];
}

/** Result of one seed. */
export interface RecipeResult {
  readonly seed: number;
  /** In a recipe with variants. */
  readonly variant?: string;
  /** Greedy mean return. */
  readonly value: number;
  readonly standardError: number;
  /** Share of the greedy policy's episodes that succeeded, where the environment says so. */
  readonly successRate?: number;
  /** The same of the sampled policy, in a recipe with `evalSampled`. */
  readonly sampledValue?: number;
  readonly sampledStandardError?: number;
  readonly sampledSuccessRate?: number;
  readonly turns: number;
  readonly wallSeconds: number;
  /** In a recipe with a target; null where it was not reached. */
  readonly episodesToTarget?: number | null;
  /** Exact values of the sampled and the greedy policy, in a recipe with `evalExact`. */
  readonly exact?: ExactEvaluations;
}

/** Where results and curves of a recipe are written, and the folder of each run. */
export interface RecipeFolders {
  readonly results: string;
  readonly run: (seed: number, variant: string | undefined) => string;
}

interface Plot {
  readonly file: string;
  readonly metric: string;
  readonly over: "num_turns" | "num_episodes" | "step";
  readonly yLabel: string;
  readonly references: Readonly<Record<string, number>>;
}

const RESULTS_FILE = "results.json";
const RECIPES = fileURLToPath(new URL("../../../recipes/", import.meta.url));

async function listRecipeNames(): Promise<string[]> {
  const folders = await readdir(RECIPES);
  return folders.filter((name) => existsSync(join(RECIPES, name, "config.json"))).toSorted();
}

/** Opens all recipes of the package, by name. */
export async function listRecipes(): Promise<Recipe[]> {
  const names = await listRecipeNames();
  return Promise.all(names.map(readRecipe));
}

/**
 * Lists the recipes that train in an environment: with the embedded model, with pretrained models,
 * or by default with any.
 */
export async function findRecipes(
  env: string,
  { isEmbedded }: { readonly isEmbedded?: boolean } = {},
): Promise<Recipe[]> {
  const runs = ({ train, variants = {} }: Recipe) =>
    [{}, ...Object.values(variants)].map((given) => ({ ...train, ...given }));
  return (await listRecipes()).filter((recipe) =>
    runs(recipe).some(
      ({ env: id, model = EMBEDDED_MODEL }) =>
        id === env && (isEmbedded === undefined || (model === EMBEDDED_MODEL) === isEmbedded),
    ),
  );
}

/** Returns the mean seconds of a seed in the published results; of the longest variant. */
export async function readRecipeSeconds({ folder, variantNames }: Recipe): Promise<number> {
  const results = await readRecipeResults(folder);
  const seconds = (variant: string | undefined) =>
    results.filter((result) => result.variant === variant).map(({ wallSeconds }) => wallSeconds);
  return Math.max(
    0,
    ...variantNames
      .map(seconds)
      .filter(({ length }) => length > 0)
      .map(mean),
  );
}

/** Opens a recipe of the package. @throws INVALID_ARGUMENT for an unknown name. */
export async function openRecipe(name: string): Promise<Recipe> {
  const names = await listRecipeNames();
  if (!names.includes(name)) throw invalidArgument(`There is no recipe "${name}". ${suggestNames(name, names)}`);
  return readRecipe(name);
}

async function readRecipe(name: string): Promise<Recipe> {
  const folder = join(RECIPES, name);
  const config = (await readJson(join(folder, "config.json"))) as unknown as RecipeConfig;
  const { random, best } = findSpec(config.train.env)?.knownReturns ?? {};
  const isReturn = config.curve === undefined;
  const references = {
    ...(random !== undefined && isReturn && { "random actions": random }),
    ...(best !== undefined && isReturn && { "best known": best }),
    ...config.references,
  };
  const variantNames = config.variants === undefined ? [undefined] : Object.keys(config.variants);
  return { ...config, name, folder, references, variantNames };
}

/**
 * Writes a seed's result to results.json in place of the one that was there. Processes that run
 * different seeds may share the file.
 */
export async function saveRecipeResult(
  recipe: Recipe,
  { results }: RecipeFolders,
  result: RecipeResult,
  source: ResultSource,
): Promise<void> {
  const path = join(results, RESULTS_FILE);
  await withLock(`${path}.lock`, async () => {
    const all = mergeResults(recipe, await readRecipeResults(results), result);
    await writeJson(path, describeResults(recipe, all, source));
  });
}

/** What a result was made with: the model, if not the recipe's, and the commit. */
interface ResultSource {
  readonly model: string | undefined;
  readonly commit: string | null;
}

function mergeResults(
  { variantNames }: Recipe,
  previous: readonly RecipeResult[],
  result: RecipeResult,
): readonly RecipeResult[] {
  const isOther = ({ seed, variant }: RecipeResult) =>
    variantNames.includes(variant) && (seed !== result.seed || variant !== result.variant);
  const variantIndex = ({ variant }: RecipeResult) => variantNames.indexOf(variant);
  return [...previous.filter(isOther), result].sort((a, b) => variantIndex(a) - variantIndex(b) || a.seed - b.seed);
}

function describeResults(
  { task, train, evalEpisodes, target, references }: Recipe,
  results: readonly RecipeResult[],
  { model, commit }: ResultSource,
) {
  return {
    task,
    model: model === undefined ? (train.model ?? "embedded") : basename(model),
    metric: `greedy mean return over ${evalEpisodes} episodes`,
    target,
    random: references["random actions"] ?? null,
    best: references["best known"] ?? null,
    seeds: results as unknown as JsonObject[],
    commit,
  };
}

async function readRecipeResults(folder: string): Promise<readonly RecipeResult[]> {
  const path = join(folder, RESULTS_FILE);
  return existsSync(path) ? ((await readJson(path)).seeds as unknown as RecipeResult[]) : [];
}

/**
 * Draws the curves of a recipe, each over all seeds that have a result and a run folder. Returns
 * their paths.
 */
export async function drawRecipe(recipe: Recipe, folders: RecipeFolders): Promise<string[]> {
  const { references } = recipe;
  const results = await readRecipeResults(folders.results);
  const over = recipe.target === undefined ? "num_turns" : "num_episodes";
  const yLabel = recipe.curve ?? "mean return while training";
  const curve = { file: "curve", metric: recipe.curve ?? MEAN_RETURN, over, yLabel, references } as const;
  const plots: readonly Plot[] = [
    curve,
    ...(recipe.plots ?? []).map((metric) => {
      const file = metric.replaceAll("/", "-");
      return { file, metric, over: "step", yLabel: metric, references: {} } as const;
    }),
  ];
  const paths: string[] = [];
  for (const plot of plots) paths.push(...(await drawPlot(recipe, folders, results, plot)));
  return paths;
}

/** Returns the path of the picture; none where no run has the metric. */
async function drawPlot(
  { task, variantNames }: Recipe,
  folders: RecipeFolders,
  results: readonly RecipeResult[],
  { file, metric, over, yLabel, references }: Plot,
): Promise<readonly string[]> {
  const series = [];
  for (const variant of variantNames) {
    const finished = results.filter((result) => result.variant === variant);
    const runs = finished.map(({ seed }) => loadCurve(folders.run(seed, variant), metric, over));
    const curves = (await Promise.all(runs)).flat();
    const label = `${curves.length} seed${curves.length === 1 ? "" : "s"}`;
    if (curves.length > 0) series.push(computeSeedBand(variant === undefined ? label : `${variant}, ${label}`, curves));
  }
  if (series.length === 0) return [];
  const svg = renderLearningCurve({
    title: task,
    xLabel: { num_turns: "turns", num_episodes: "episodes", step: "updates" }[over],
    yLabel,
    series,
    references: Object.entries(references).map(([name, y]) => ({ name, y })),
  });
  const path = join(folders.results, `${file}.svg`);
  await writeFileAtomic(path, svg);
  return [path];
}

/** Returns the episodes after which a mean return was reached; null where it was not. */
export async function countEpisodesToReach(target: number, folder: string): Promise<number | null> {
  const { x, y } = await readMetricCurve(folder, MEAN_RETURN, "num_episodes");
  return x[y.findIndex((value) => value >= target)] ?? null;
}

/** A metric of a run; none where its folder is not there, or has less than two such numbers. */
async function loadCurve(folder: string, metric: string, over: Plot["over"]) {
  if (!existsSync(join(folder, "metrics.jsonl"))) return [];
  const curve = await readMetricCurve(folder, metric, over);
  return curve.x.length < 2 ? [] : [curve];
}
