/**
 * Reruns a recipe: `npm run recipe -- NAME [--seed N] [--variant NAME] [--model MODEL] [--threads
 * N] [--output FOLDER]`. Without --seed all of its seeds run, one after the other, and without
 * --variant all of its variants; what was run before with the same settings resumes where it
 * stopped. Writes results.json, curve.svg and a picture of each metric in `plots` into the recipe's
 * folder, and report.html, the views of the dashboard, into each run's folder.
 */
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { findSpec } from "../src/envs.js";
import { LlamaGymError } from "../src/core/errors.js";
import { TrainingReport } from "../src/app/cli/display/report-training.js";
import { Reporter } from "../src/app/cli/reporter.js";
import { RunEnv } from "../src/app/runs/run-env.js";
import { renderReport } from "../src/app/dashboard/report.js";
import { readJson, writeFileAtomic, writeJson, type JsonObject } from "../src/models/files/index.js";
import { renderLearningCurve, MEAN_RETURN, readMetricCurve, computeSeedBand } from "../src/app/tracking/index.js";
import { resolveTrainConfig, resumeRun, startRun, type Run, type TrainOptions } from "../src/app/runs/index.js";
import { closeEnvs } from "../src/rl/rollout/index.js";
import { evaluate, evaluateExact, type EvalResult, type ExactEvaluations } from "../src/rl/train/index.js";

/** What a recipe's config.json says. */
interface Recipe {
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
   * Values that are known and worth a line in the curve, by name. "random actions" and "best known"
   * stand in place of those of the environment's id, where `train` gives it other options.
   */
  readonly references?: Readonly<Record<string, number>>;
  /** Metric of the curve in place of the mean return while training. */
  readonly curve?: string;
  /** Other metrics that are drawn over the updates, each in a picture of its name. */
  readonly plots?: readonly string[];
}

/** What a picture shows. */
interface Plot {
  readonly file: string;
  readonly metric: string;
  readonly over: "num_turns" | "num_episodes" | "step";
  readonly yLabel: string;
  readonly references: Readonly<Record<string, number>>;
}

/** What came of one seed. */
interface SeedResult {
  readonly seed: number;
  /** In a recipe that compares several ways. */
  readonly variant?: string;
  /** Greedy mean return. */
  readonly value: number;
  readonly standardError: number;
  /** Mean return of the sampled policy, in a recipe with `evalSampled`. */
  readonly sampledValue?: number;
  readonly sampledStandardError?: number;
  readonly turns: number;
  readonly wallSeconds: number;
  /** In a recipe with a target; null where it was not reached. */
  readonly episodesToTarget?: number | null;
  /** Exact values of the sampled and the greedy policy, in a recipe with `evalExact`. */
  readonly exact?: ExactEvaluations;
}

const recipes = fileURLToPath(new URL("../../", import.meta.url));
const { values, positionals } = parseArgs({
  options: {
    seed: { type: "string" },
    variant: { type: "string" },
    /** In place of the recipe's. */
    model: { type: "string" },
    threads: { type: "string" },
    output: { type: "string", default: "runs/recipes" },
  },
  allowPositionals: true,
});
const [name] = positionals;
const recipeNames = readdirSync(recipes).filter((folder) => existsSync(join(recipes, folder, "config.json")));
if (name === undefined || !recipeNames.includes(name)) {
  fail(`usage: npm run recipe -- NAME [--seed N] [--variant NAME]; recipes: ${recipeNames.join(", ")}`);
}
const folder = join(recipes, name);
const recipe = (await readJson(join(folder, "config.json"))) as unknown as Recipe;
const { random, best } = findSpec(recipe.train.env)?.knownReturns ?? {};
/** Returns to compare with, by name. */
const references: Readonly<Record<string, number>> = {
  ...(random === undefined || recipe.curve !== undefined ? {} : { "random actions": random }),
  ...(best === undefined || recipe.curve !== undefined ? {} : { "best known": best }),
  ...recipe.references,
};
const variants: readonly (string | undefined)[] =
  recipe.variants === undefined ? [undefined] : Object.keys(recipe.variants);
if (values.variant !== undefined && !variants.includes(values.variant))
  fail(`${name} has no variant "${values.variant}"; it has: ${variants.join(", ")}`);
const chosenVariants = values.variant === undefined ? variants : [values.variant];
const seeds = values.seed === undefined ? recipe.seeds : [Number(values.seed)];

const interrupt = new AbortController();
process.on("SIGINT", () => {
  if (interrupt.signal.aborted) process.exit(130);
  interrupt.abort();
  process.stderr.write("\nFinishing this update, then saving; the same command resumes.\n");
});

for (const [seed, variant] of seeds.flatMap((seed) => chosenVariants.map((variant) => [seed, variant] as const))) {
  const result = await runSeed(seed, variant).catch((error: unknown) => {
    if (error instanceof LlamaGymError) fail(error.message);
    throw error;
  });
  if (result === undefined) break;
  await saveResult(result);
  await writeFileAtomic(join(runFolder(seed, variant), "report.html"), await renderReport([runFolder(seed, variant)]));
}
await drawPlots();

/** Trains and evaluates with a seed; undefined when it was interrupted. */
async function runSeed(seed: number, variant: string | undefined): Promise<SeedResult | undefined> {
  const output = runFolder(seed, variant);
  const options = {
    ...recipe.train,
    ...(variant === undefined ? {} : recipe.variants?.[variant]),
    ...(values.model === undefined ? {} : { model: values.model }),
    ...(values.threads === undefined ? {} : { threads: Number(values.threads) }),
    seed,
  };
  const run = existsSync(join(output, "config.json"))
    ? await resumeRun(output, resolveTrainConfig(options))
    : await startRun(options, output);
  try {
    const trained = await train(run);
    if (trained.isInterrupted) return undefined;
    await run.saveModel();
    const env = new RunEnv({ ...run.config, envOptions: { ...run.config.envOptions, ...recipe.evalEnvOptions } });
    const makeEnv = async () => env.open();
    const evaluateIn = (mode: "train" | "eval") =>
      evaluate(run.agent, makeEnv, { episodes: recipe.evalEpisodes, seed: recipe.evalSeed, mode });
    const greedy = await evaluateIn("eval");
    const sampled = recipe.evalSampled === true ? await evaluateIn("train") : undefined;
    const exact = recipe.train.evalExact === true ? await evaluateExactly(run, env) : undefined;
    const label = variant === undefined ? `seed ${seed}` : `${variant}, seed ${seed}`;
    const suffix = sampled === undefined ? "" : `, sampled ${formatMean(sampled)}`;
    const nashConv = exact === undefined ? "" : `, NashConv ${exact.sampled.nashConv.toFixed(4)}`;
    process.stdout.write(`${label}: ${formatMean(greedy)}${suffix}${nashConv}\n`);
    const { turns, seconds } = trained.state;
    const episodesToTarget = recipe.target === undefined ? undefined : await episodesToReach(recipe.target, output);
    return {
      seed,
      ...(variant === undefined ? {} : { variant }),
      value: greedy.meanReturn,
      standardError: greedy.standardError,
      sampledValue: sampled?.meanReturn,
      sampledStandardError: sampled?.standardError,
      turns,
      wallSeconds: Math.round(seconds),
      episodesToTarget,
      exact,
    };
  } finally {
    await run.close();
  }
}

async function evaluateExactly({ agent }: Run, env: RunEnv): Promise<ExactEvaluations> {
  const opened = await env.open();
  try {
    return await evaluateExact(agent, opened);
  } finally {
    await closeEnvs([opened], (message) => process.stderr.write(`${message}\n`));
  }
}

function formatMean({ meanReturn, standardError }: EvalResult): string {
  return `${meanReturn.toFixed(4)} ± ${standardError.toFixed(4)}`;
}

async function train(run: Run) {
  const report = new TrainingReport(new Reporter());
  const result = await run.train({
    signal: interrupt.signal,
    onProgress: (progress) => report.update(progress),
    onWarmStart: (metrics) => report.updateWarmStart(metrics, run.config.sftSteps),
  });
  report.end();
  return result;
}

/** Puts a seed's result in place of the one that was there. */
async function saveResult(result: SeedResult): Promise<void> {
  const path = join(folder, "results.json");
  const previous = existsSync(path) ? ((await readJson(path)).seeds as unknown as SeedResult[]) : [];
  const isOther = ({ seed, variant }: SeedResult) =>
    variants.includes(variant) && (seed !== result.seed || variant !== result.variant);
  const variantIndex = ({ variant }: SeedResult) => variants.indexOf(variant);
  const all = [...previous.filter(isOther), result].sort(
    (a, b) => variantIndex(a) - variantIndex(b) || a.seed - b.seed,
  );
  await writeJson(path, {
    task: recipe.task,
    model: values.model === undefined ? (recipe.train.model ?? "embedded") : basename(values.model),
    metric: `greedy mean return over ${recipe.evalEpisodes} episodes`,
    target: recipe.target,
    random: references["random actions"] ?? null,
    best: references["best known"] ?? null,
    seeds: all as unknown as JsonObject[],
    commit: readCommit(),
  });
}

/** Draws what a recipe shows, each over all seeds that ran here. */
async function drawPlots(): Promise<void> {
  const over = recipe.target === undefined ? "num_turns" : "num_episodes";
  const yLabel = recipe.curve ?? "mean return while training";
  await drawPlot({ file: "curve", metric: recipe.curve ?? MEAN_RETURN, over, yLabel, references });
  for (const metric of recipe.plots ?? [])
    await drawPlot({ file: metric.replaceAll("/", "-"), metric, over: "step", yLabel: metric, references: {} });
}

async function drawPlot({ file, metric, over, yLabel, references }: Plot): Promise<void> {
  const series = [];
  for (const variant of variants) {
    const runs = recipe.seeds.map((seed) => loadCurve(runFolder(seed, variant), metric, over));
    const curves = (await Promise.all(runs)).flat();
    const seeds = `${curves.length} seed${curves.length === 1 ? "" : "s"}`;
    if (curves.length > 0) series.push(computeSeedBand(variant === undefined ? seeds : `${variant}, ${seeds}`, curves));
  }
  if (series.length === 0) return;
  const svg = renderLearningCurve({
    title: recipe.task,
    xLabel: { num_turns: "turns", num_episodes: "episodes", step: "updates" }[over],
    yLabel,
    series,
    references: Object.entries(references).map(([label, y]) => ({ name: label, y })),
  });
  await writeFileAtomic(join(folder, `${file}.svg`), svg);
}

/** After how many episodes a mean return was reached; null where it was not. */
async function episodesToReach(target: number, folder: string): Promise<number | null> {
  const { x, y } = await readMetricCurve(folder, MEAN_RETURN, "num_episodes");
  return x[y.findIndex((value) => value >= target)] ?? null;
}

/** A metric of a run; none where it has not been run, or has no such number. */
async function loadCurve(folder: string, metric: string, over: Plot["over"]) {
  if (!existsSync(join(folder, "metrics.jsonl"))) return [];
  const curve = await readMetricCurve(folder, metric, over);
  return curve.x.length === 0 ? [] : [curve];
}

function runFolder(seed: number, variant: string | undefined): string {
  const words = variant === undefined ? [] : [variant.replaceAll(/[^a-z0-9]+/gi, "-")];
  return join(values.output, [name, ...words, seed].join("-"));
}

function fail(message: string): never {
  process.stderr.write(`${message}\n`);
  process.exit(2);
}

function readCommit(): string | null {
  const { status, stdout } = spawnSync("git", ["rev-parse", "--short", "HEAD"], { cwd: recipes, encoding: "utf8" });
  return status === 0 ? stdout.trim() : null;
}
