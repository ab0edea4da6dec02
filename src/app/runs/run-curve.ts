import { ignoreMissingFile } from "../../core/files/file-errors.js";
import { writeFileAtomic } from "../../core/files/write-file-atomic.js";
import {
  METRICS_FILE,
  readMetrics,
  type MetricRecord,
  type ResumePoint,
  type Tracker,
} from "../../rl/tracking/index.js";
import { basename, join, resolve } from "node:path";
import { invalidArgument, type LlamaGymError } from "../../core/errors.js";
import { suggestNames } from "../../core/suggest.js";
import {
  isDrawable,
  MEAN_RETURN,
  renderLearningCurve,
  type CurveReference,
  type CurveSeries,
  type LearningCurve,
} from "../tracking/index.js";
import { requireRunConfig } from "../../rl/train/index.js";
import { findRunEnv, type EnvConfig, type RunEnv } from "./run-env.js";
import type { TrainConfig } from "./run-settings.js";

const CURVE_FILE = "curve.svg";
const SFT_LOSS = "sft/loss";
/** Mean reward of the completions of an update. */
export const MEAN_REWARD = "reward";
/** Updates are averaged to at most this many points, so that a curve stays readable. */
const MAX_POINTS = 200;

/**
 * What a curve needs of a run's config; only runs in environments have one, and runs of SFT have no
 * algorithm.
 */
type CurveConfig = Partial<EnvConfig> & { readonly algorithm?: string };

/**
 * Returns the mean returns of random actions and of the best known policy, for an environment as
 * registered.
 */
export function listReferences(env: RunEnv | undefined): readonly CurveReference[] {
  const known = env?.knownReturns;
  if (known === undefined) return [];
  return [
    { name: "random actions", y: known.random },
    { name: "best known", y: known.best },
  ];
}

/**
 * Reads the curves of runs: by default the mean return over turns, the mean reward over updates of
 * runs on prompts, or the loss of runs on examples. References are the environment's, if all runs
 * have the same.
 * @throws FILE_NOT_FOUND for a folder without a run, INVALID_ARGUMENT for a metric that a run does
 * not record.
 */
export async function readRunCurves(folders: readonly string[], metric?: string): Promise<LearningCurve> {
  const runs = await Promise.all(
    folders.map(async (folder) => ({
      name: basename(resolve(folder)),
      config: await requireRunConfig<CurveConfig>(folder),
      records: (await readMetrics(join(folder, METRICS_FILE)).catch(ignoreMissingFile)) ?? [],
    })),
  );
  const [{ config }] = runs;
  const shown = metric ?? defaultMetric(config);
  for (const { name, records } of runs)
    if (!records.some((record) => isDrawable(record[shown]))) throw missingMetricError(name, shown, records);
  const isSameEnv = runs.every((run) => JSON.stringify(run.config.env) === JSON.stringify(config.env));
  const series = runs.map(({ name, records }) => createSeries(name, records, shown));
  return createCurve(config, shown, series, isSameEnv);
}

/** Draws a run's curve into its folder whenever the run saves a checkpoint, and at its end. */
export async function openCurveTracker(
  folder: string,
  config: CurveConfig & Pick<TrainConfig, "saveSteps">,
  { resumeFromStep }: ResumePoint,
): Promise<Tracker> {
  const metric = defaultMetric(config);
  const saved =
    resumeFromStep === undefined
      ? []
      : ((await readMetrics(join(folder, METRICS_FILE)).catch(ignoreMissingFile)) ?? []);
  const records = saved.filter(({ step }) => step <= resumeFromStep!);
  const write = async (): Promise<void> => {
    const series = createSeries("mean over updates", records, metric);
    if (series.x.length < 2) return;
    await writeFileAtomic(join(folder, CURVE_FILE), renderLearningCurve(createCurve(config, metric, [series], true)));
  };
  return {
    log: async (step, record) => {
      const { [metric]: value, num_turns: turns } = record;
      if (!isDrawable(value)) return;
      records.push({ step, [metric]: value, ...(turns === undefined ? {} : { num_turns: turns }) });
      if (step % config.saveSteps === 0) await write();
    },
    close: write,
  };
}

function defaultMetric({ env, algorithm }: CurveConfig): string {
  if (env !== undefined) return MEAN_RETURN;
  if (algorithm === "dpo" || algorithm === "kto") return `${algorithm}/loss`;
  return algorithm === undefined ? SFT_LOSS : MEAN_REWARD;
}

function createCurve(
  config: CurveConfig,
  metric: string,
  series: readonly CurveSeries[],
  isSameEnv: boolean,
): LearningCurve {
  const isReturn = metric === MEAN_RETURN;
  const yLabel = isReturn ? "mean return" : metric;
  return {
    title: isSameEnv && config.env !== undefined ? `${config.env}: ${yLabel} during training` : yLabel,
    xLabel: config.env === undefined ? "updates" : "turns",
    yLabel,
    series,
    references: isReturn && isSameEnv ? listReferences(findRunEnv(config)) : [],
  };
}

/** Averages a metric over consecutive updates. */
function createSeries(name: string, records: readonly MetricRecord[], metric: string): CurveSeries {
  const points = records.filter((record) => isDrawable(record[metric]));
  const size = Math.ceil(points.length / MAX_POINTS);
  const buckets = Array.from({ length: Math.ceil(points.length / size) }, (_, i) =>
    points.slice(i * size, (i + 1) * size),
  );
  return {
    name,
    x: buckets.map((bucket) => bucket[bucket.length - 1].num_turns ?? bucket[bucket.length - 1].step),
    y: buckets.map((bucket) => bucket.reduce((sum, record) => sum + record[metric], 0) / bucket.length),
  };
}

function missingMetricError(name: string, metric: string, records: readonly MetricRecord[]): LlamaGymError {
  const names = [...new Set(records.flatMap((record) => Object.keys(record)))].filter((key) => key !== "step");
  if (names.length === 0) return invalidArgument(`The run ${name} has no metrics yet. Plot it after its first update.`);
  if (names.includes(metric))
    return invalidArgument(
      `No value of "${metric}" in the run ${name} can be drawn: all are NaN, infinite or too large.`,
    );
  return invalidArgument(`The run ${name} records no "${metric}". ${suggestNames(metric, names)}`);
}
