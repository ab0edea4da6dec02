import { join } from "node:path";
import { nameHint } from "../../envs/registry/nearest-name.js";
import { invalid } from "../../algorithms/shared/settings.js";
import { LlamaGymError } from "../../errors.js";
import { readMetrics, type MetricRecord } from "../../tracking/index.js";
import { evaluate } from "../evaluate.js";
import { readRunConfig } from "../run-folder.js";
import { resumeRun, startRun, type Run, type RunOptions } from "../run.js";
import type { TrainConfig, TrainOptions } from "../settings.js";
import { shareDone, type TrainingEvent } from "../trainer.js";
import type { Measure } from "./results.js";
import { GREEDY, type SweepConfig } from "./settings.js";

/** A run that is to train until so much of it is done. */
export interface Stage {
  readonly options: TrainOptions;
  readonly folder: string;
  /** From 1. */
  readonly rung: number;
  /** Of the whole run. */
  readonly share: number;
}

export interface StageOptions extends RunOptions {
  readonly signal?: AbortSignal;
  readonly onProgress?: (event: TrainingEvent) => void;
  /** Told of the episodes of greedy play that have ended since the last call, and how many there are to be. */
  readonly onEvaluation?: (ended: number, total: number) => void;
}

/** A run that could not be opened: its model, its files, its folder. */
export class OpeningFailed extends Error {
  constructor(readonly reason: unknown) {
    super(String(reason));
  }
}

/** A metric that a run does not record. */
export class MetricMissing extends Error {
  constructor(readonly reason: LlamaGymError) {
    super(reason.message);
  }
}

/**
 * Begins a run, or goes on with it, until so much of it is done, and measures it; undefined where the signal came before. The run
 * knows its whole length from its beginning: its learning rate and all else that falls over a run are those of a run that is not
 * stopped on the way. Throws OpeningFailed, MetricMissing, and what training throws.
 */
export async function playStage(
  stage: Stage,
  config: SweepConfig,
  { signal, onProgress, onEvaluation, ...extras }: StageOptions,
): Promise<Measure | undefined> {
  const { folder, share, rung } = stage;
  const isStopped = () => signal?.aborted === true;
  const run = await openStage(stage, extras);
  try {
    if (doneOf(run.config, await lastRecord(folder)) < share)
      await trainUntil(run, share, config, { signal, onProgress });
    if (isStopped()) return undefined;
    await run.saveAdapter();
    const records = await readMetrics(join(folder, "metrics.jsonl"));
    const value =
      config.metric === GREEDY ? await greedy(run, config, { signal, onEvaluation }) : lastMean(records, config);
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

async function openStage({ options, folder }: Stage, extras: RunOptions): Promise<Run> {
  try {
    const isBegun = (await readRunConfig(folder)) !== undefined;
    return isBegun ? await resumeRun(folder, {}, extras) : await startRun(options, folder, extras);
  } catch (error) {
    throw new OpeningFailed(error);
  }
}

async function trainUntil(
  run: Run,
  share: number,
  { metric }: SweepConfig,
  { signal, onProgress }: Pick<StageOptions, "signal" | "onProgress">,
): Promise<void> {
  const pause = new AbortController();
  let missing: LlamaGymError | undefined;
  await run.train({
    signal: signal === undefined ? pause.signal : AbortSignal.any([signal, pause.signal]),
    onProgress: (event) => {
      onProgress?.(event);
      const { metrics } = event;
      // Before its first update a run has recorded nothing.
      if (metrics.turns === undefined) return;
      if (metric !== GREEDY && !Object.hasOwn(metrics, metric)) missing ??= unknownMetric(metric, metrics);
      if (missing !== undefined || (share < 1 && doneOf(run.config, metrics) >= share)) pause.abort();
    },
  });
  if (missing !== undefined) throw new MetricMissing(missing);
}

function unknownMetric(metric: string, metrics: MetricRecord): LlamaGymError {
  const names = [GREEDY, ...Object.keys(metrics)];
  return invalid(`Updates record no "${metric}" to compare trials by. ${nameHint(metric, names)}`);
}

/** The share of a run that is done after the update of a record: 0 to 1. */
function doneOf(config: TrainConfig, record: MetricRecord | undefined): number {
  if (record?.turns === undefined) return 0;
  return shareDone(config, { episodes: record.episodes, turns: record.turns });
}

/** The record of the last update; undefined before the first. What a run recorded after its checkpoint is gone when it is open. */
async function lastRecord(folder: string): Promise<MetricRecord | undefined> {
  const records = await readMetrics(join(folder, "metrics.jsonl")).catch((error: unknown) => {
    if (error instanceof LlamaGymError && error.code === "FILE_NOT_FOUND") return [];
    throw error;
  });
  return records.at(-1);
}

/** The mean of a metric over the last updates in which it is a number. */
function lastMean(records: readonly MetricRecord[], { metric, metricUpdates = 1 }: SweepConfig): number {
  const values = records
    .slice(-metricUpdates)
    .map((record) => record[metric] ?? NaN)
    .filter(Number.isFinite);
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

async function greedy(
  { agent, makeEnv }: Run,
  { evalEpisodes, evalSeed }: SweepConfig,
  { signal, onEvaluation }: Pick<StageOptions, "signal" | "onEvaluation">,
): Promise<number> {
  const episodes = evalEpisodes!;
  const { meanReturn } = await evaluate(agent, makeEnv, {
    episodes,
    seed: evalSeed,
    signal,
    onRound: (_turns, ended) => onEvaluation?.(ended.length, episodes),
  });
  return meanReturn;
}
