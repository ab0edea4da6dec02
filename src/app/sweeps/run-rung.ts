import { join } from "node:path";
import { suggestNames } from "../../core/suggest.js";
import { invalidArgument } from "../../core/settings.js";
import { LlamaGymError } from "../../core/errors.js";
import { readMetrics, type MetricRecord } from "../../rl/tracking/index.js";
import { evaluate } from "../../rl/train/evaluate.js";
import { readRunConfig } from "../runs/run-folder.js";
import { resumeRun, startRun, type Run, type RunOptions } from "../runs/run.js";
import type { TrainConfig, TrainOptions } from "../runs/run-settings.js";
import type { TrainProgress } from "../../rl/train/train-loop.js";
import { progressFraction } from "../../rl/train/trainer.js";
import type { RungResult } from "./trial-result.js";
import { EVAL_MEAN_RETURN, type SweepConfig } from "./sweep-settings.js";

/** A run that is to train until so much of it is done. */
export interface RungRun {
  readonly options: TrainOptions;
  readonly folder: string;
  /** From 1. */
  readonly rung: number;
  /** Of the whole run. */
  readonly share: number;
}

export interface RungRunOptions extends RunOptions {
  readonly signal?: AbortSignal;
  readonly onProgress?: (event: TrainProgress) => void;
  /** Told of the episodes of greedy play that have ended since the last call, and how many there are to be. */
  readonly onEvaluation?: (finished: number, total: number) => void;
}

/** A run that could not be opened: its model, its files, its folder. */
export class RunOpenError extends Error {
  constructor(readonly reason: unknown) {
    super(String(reason));
  }
}

/** A metric that a run does not record. */
export class MissingMetricError extends Error {
  constructor(readonly reason: LlamaGymError) {
    super(reason.message);
  }
}

/**
 * Begins a run, or goes on with it, until so much of it is done, and measures it; undefined where the signal came before. The run
 * knows its whole length from its beginning: its learning rate and all else that falls over a run are those of a run that is not
 * stopped on the way. Throws OpeningFailed, MetricMissing, and what training throws.
 */
export async function runRung(
  rungRun: RungRun,
  config: SweepConfig,
  { signal, onProgress, onEvaluation, ...runOptions }: RungRunOptions,
): Promise<RungResult | undefined> {
  const { folder, share, rung } = rungRun;
  const isStopped = () => signal?.aborted === true;
  const run = await openRungRun(rungRun, runOptions);
  try {
    if (computeProgress(run.config, await readLastRecord(folder)) < share)
      await trainUntil(run, share, config, { signal, onProgress });
    if (isStopped()) return undefined;
    await run.saveAdapter();
    const records = await readMetrics(join(folder, "metrics.jsonl"));
    const value =
      config.metric === EVAL_MEAN_RETURN
        ? await evaluateGreedily(run, config, { signal, onEvaluation })
        : computeRecentMean(records, config);
    // An evaluation that the signal ended has not played all of its episodes.
    if (isStopped()) return undefined;
    if (!Number.isFinite(value))
      throw new LlamaGymError("TRAINING_DIVERGED", `${config.metric} is no finite number at the end.`);
    // Where demonstrations alone are learnt (turns: 0) there is no update to tell of.
    const { step = 0, turns = 0, episodes = 0 } = records.at(-1) ?? {};
    return { rung, value, updates: step, turns, episodes };
  } finally {
    await run.close();
  }
}

async function openRungRun({ options, folder }: RungRun, runOptions: RunOptions): Promise<Run> {
  try {
    const hasStarted = (await readRunConfig(folder)) !== undefined;
    return hasStarted ? await resumeRun(folder, {}, runOptions) : await startRun(options, folder, runOptions);
  } catch (error) {
    throw new RunOpenError(error);
  }
}

async function trainUntil(
  run: Run,
  share: number,
  { metric }: SweepConfig,
  { signal, onProgress }: Pick<RungRunOptions, "signal" | "onProgress">,
): Promise<void> {
  const rungEnd = new AbortController();
  let metricError: LlamaGymError | undefined;
  await run.train({
    signal: signal === undefined ? rungEnd.signal : AbortSignal.any([signal, rungEnd.signal]),
    onProgress: (event) => {
      onProgress?.(event);
      const { metrics } = event;
      // Before its first update a run has recorded nothing.
      if (metrics.num_turns === undefined) return;
      if (metric !== EVAL_MEAN_RETURN && !Object.hasOwn(metrics, metric))
        metricError ??= createUnknownMetricError(metric, metrics);
      if (metricError !== undefined || (share < 1 && computeProgress(run.config, metrics) >= share)) rungEnd.abort();
    },
  });
  if (metricError !== undefined) throw new MissingMetricError(metricError);
}

function createUnknownMetricError(metric: string, metrics: MetricRecord): LlamaGymError {
  const names = [EVAL_MEAN_RETURN, ...Object.keys(metrics)];
  return invalidArgument(`Updates record no "${metric}" to compare trials by. ${suggestNames(metric, names)}`);
}

/** The share of a run that is done after the update of a record: 0 to 1. */
function computeProgress(config: TrainConfig, record: MetricRecord | undefined): number {
  if (record?.num_turns === undefined) return 0;
  return progressFraction(config, { episodes: record.num_episodes, turns: record.num_turns });
}

/** The record of the last update; undefined before the first. What a run recorded after its checkpoint is gone when it is open. */
async function readLastRecord(folder: string): Promise<MetricRecord | undefined> {
  const records = await readMetrics(join(folder, "metrics.jsonl")).catch((error: unknown) => {
    if (error instanceof LlamaGymError && error.code === "FILE_NOT_FOUND") return [];
    throw error;
  });
  return records.at(-1);
}

/** The mean of a metric over the last updates in which it is a number. */
function computeRecentMean(records: readonly MetricRecord[], { metric, metricUpdates = 1 }: SweepConfig): number {
  const values = records
    .slice(-metricUpdates)
    .map((record) => record[metric] ?? NaN)
    .filter(Number.isFinite);
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

async function evaluateGreedily(
  { agent, makeEnv }: Run,
  { evalEpisodes, evalSeed }: SweepConfig,
  { signal, onEvaluation }: Pick<RungRunOptions, "signal" | "onEvaluation">,
): Promise<number> {
  const episodes = evalEpisodes!;
  const { meanReturn } = await evaluate(agent, makeEnv, {
    episodes,
    seed: evalSeed,
    signal,
    onProgress: (_turns, finished) => onEvaluation?.(finished.length, episodes),
  });
  return meanReturn;
}
