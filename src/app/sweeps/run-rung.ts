import { ignoreMissingFile } from "../../core/files/file-errors.js";
import { METRICS_FILE, readMetrics, type MetricRecord } from "../../rl/tracking/index.js";
import { join } from "node:path";
import { suggestNames } from "../../core/suggest.js";
import { LlamaGymError, invalidArgument } from "../../core/errors.js";
import { evaluate, readRunConfig, type TrainProgress, progressFraction } from "../../rl/train/index.js";
import { resumeRun, startRun, type Run, type RunOptions } from "../runs/run.js";
import { resumePromptRun, startPromptRun, type PromptRun } from "../runs/prompt-run.js";
import { resumePreferenceRun, startPreferenceRun, type PreferenceRun } from "../runs/preference-run.js";
import { resumeSftRun, startSftRun, type SftRun } from "../runs/sft-run.js";
import type { ExampleTrialOptions } from "./search-space.js";
import { isExampleRun, isPromptRun, type TrialOptions } from "./sweep-plan.js";
import type { RungResult } from "./trial-result.js";
import { EVAL_MEAN_RETURN, type SweepConfig } from "./sweep-settings.js";

/** A run to train up to a fraction of its length. */
export interface RungRun {
  readonly options: TrialOptions;
  readonly folder: string;
  /** Counted from 1. */
  readonly rung: number;
  /** Fraction of the whole run. */
  readonly share: number;
}

export interface RungRunOptions extends RunOptions {
  readonly signal?: AbortSignal;
  readonly onProgress?: (event: TrainProgress) => void;
  /**
   * Called with the number of evaluation episodes that ended since the last call, and their total.
   */
  readonly onEvaluation?: (finished: number, total: number) => void;
}

/** A failure to open a run: its model, its files or its folder. */
export class RunOpenError extends Error {
  constructor(readonly reason: unknown) {
    super(String(reason));
  }
}

/** The error of a metric that a run does not record. */
export class MissingMetricError extends Error {
  constructor(readonly reason: LlamaGymError) {
    super(reason.message);
  }
}

/**
 * Starts or resumes a run, trains it up to the given fraction, and measures it; undefined if the
 * signal aborted it. Schedules follow the whole length of the run, as without pauses. @throws
 * RunOpenError, MissingMetricError, and what training throws.
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
    if (isOnExamples(run)) await trainExamplesUntil(run, share, signal);
    else if (computeProgress(run, await readLastRecord(folder)) < share)
      await trainUntil(run, share, config, { signal, onProgress });
    if (isStopped()) return undefined;
    await run.saveModel();
    const records = await readMetrics(join(folder, METRICS_FILE));
    const value =
      config.metric === EVAL_MEAN_RETURN
        ? await evaluateGreedily(run as Run, config, { signal, onEvaluation })
        : computeRecentMean(records, config);
    if (
      isOnExamples(run) &&
      Number.isNaN(value) &&
      records.length > 0 &&
      !records.some((record) => config.metric in record)
    )
      throw new MissingMetricError(
        createUnknownMetricError(config.metric, Object.assign({}, ...records) as MetricRecord),
      );
    // An aborted evaluation is incomplete.
    if (isStopped()) return undefined;
    if (!Number.isFinite(value))
      throw new LlamaGymError("TRAINING_DIVERGED", `${config.metric} is not finite at the end.`);
    // With turns: 0, only the warm start trains, so there is no update.
    const { step = 0, num_turns: turns = 0, num_episodes: episodes = 0 } = records.at(-1) ?? {};
    return { rung, value, updates: step, turns, episodes };
  } finally {
    await run.close();
  }
}

type AnyRun = Run | PromptRun | ExampleRun;
type ExampleRun = SftRun | PreferenceRun;

async function openRungRun({ options, folder }: RungRun, runOptions: RunOptions): Promise<AnyRun> {
  try {
    const hasStarted = (await readRunConfig(folder)) !== undefined;
    if (isExampleRun(options)) return await openExamples(options, folder, hasStarted, runOptions);
    if (isPromptRun(options))
      return hasStarted
        ? await resumePromptRun(options.algorithm, folder, {}, runOptions)
        : await startPromptRun(options, folder, runOptions);
    return hasStarted ? await resumeRun(folder, {}, runOptions) : await startRun(options, folder, runOptions);
  } catch (error) {
    throw new RunOpenError(error);
  }
}

async function openExamples(
  { algorithm, ...options }: ExampleTrialOptions,
  folder: string,
  hasStarted: boolean,
  runOptions: RunOptions,
): Promise<ExampleRun> {
  if (algorithm === "sft")
    return hasStarted ? resumeSftRun(folder, {}, runOptions) : startSftRun(options, folder, runOptions);
  return hasStarted
    ? resumePreferenceRun(algorithm, folder, {}, runOptions)
    : startPreferenceRun({ ...options, algorithm }, folder, runOptions);
}

async function trainExamplesUntil(run: ExampleRun, share: number, signal: AbortSignal | undefined): Promise<void> {
  const last = Math.ceil(share * (run.opened.trainer.totalSteps ?? 0));
  let updates = run.opened.resumedAt;
  if (updates >= last) return;
  const rungEnd = new AbortController();
  await run.train({
    signal: signal === undefined ? rungEnd.signal : AbortSignal.any([signal, rungEnd.signal]),
    onStep: () => {
      updates++;
      if (share < 1 && updates >= last) rungEnd.abort();
    },
  });
}

function isOnExamples(run: AnyRun): run is ExampleRun {
  return "invalidLines" in run.opened;
}

async function trainUntil(
  run: Run | PromptRun,
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
      // A run records nothing before its first update.
      if (Object.keys(metrics).length === 0) return;
      if (metric !== EVAL_MEAN_RETURN && !Object.hasOwn(metrics, metric))
        metricError ??= createUnknownMetricError(metric, metrics);
      if (metricError !== undefined || (share < 1 && computeProgress(run, metrics, event.state.updates) >= share))
        rungEnd.abort();
    },
  });
  if (metricError !== undefined) throw new MissingMetricError(metricError);
}

function createUnknownMetricError(metric: string, metrics: MetricRecord): LlamaGymError {
  const names = [EVAL_MEAN_RETURN, ...Object.keys(metrics)];
  return invalidArgument(`Updates record no "${metric}" to compare trials by. ${suggestNames(metric, names)}`);
}

/** Returns the fraction of a run that is complete after the update of a record. */
function computeProgress(run: Run | PromptRun, record: MetricRecord | undefined, updates = record?.step ?? 0): number {
  if (isOnPromptRun(run)) return updates / run.opened.totalSteps;
  const { config } = run;
  if (record?.num_turns === undefined) return 0;
  return progressFraction(config, { episodes: record.num_episodes, turns: record.num_turns });
}

function isOnPromptRun(run: Run | PromptRun): run is PromptRun {
  return "totalSteps" in run.opened;
}

/** Returns the record of the last update. Opening a run removes records after its checkpoint. */
async function readLastRecord(folder: string): Promise<MetricRecord | undefined> {
  const records = await readMetrics(join(folder, METRICS_FILE)).catch(ignoreMissingFile);
  return records?.at(-1);
}

/** Averages a metric over the last updates in which it is a number. */
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
