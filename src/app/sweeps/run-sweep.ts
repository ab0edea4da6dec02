import { join } from "node:path";
import { invalidArgument, LlamaGymError, type ErrorCode } from "../../core/errors.js";
import { writeJson } from "../../core/files/json-file.js";
import type { FolderLock } from "../../core/files/folder-lock.js";
import { EnvSupply } from "../runs/env-supply.js";
import { readTextEnv } from "../runs/make-text-agent.js";
import { hashFile } from "../runs/hash-files.js";
import { loadRewardFunctions, loadTools } from "../runs/load-exports.js";
import { RunEnv } from "../runs/run-env.js";
import { checkWritable, openLocked } from "../runs/run-folder.js";
import type { TrainConfig } from "../runs/run-settings.js";
import type { RunOptions } from "../runs/run.js";
import type { TrainProgress } from "../../rl/train/index.js";
import { isExampleRun, isPromptRun, planSweep, type SweepPlan, type Trial } from "./sweep-plan.js";
import { writeCharts } from "./charts.js";
import { selectPromoted, rankTrials, type RungResult, type TrialResult } from "./trial-result.js";
import { loadSweepAlgorithms, resolveSweepConfig, type SweepConfig, type SweepOptions } from "./sweep-settings.js";
import { MissingMetricError, RunOpenError, runRung } from "./run-rung.js";
import { SweepFolder } from "./sweep-folder.js";
import type { TrialSettings } from "./trial-settings.js";

/** Settings of the best trial, for `llamagym train --config`. */
export const BEST_FILE = "best.json";

/** A run of a sweep that starts or resumes. */
export interface SweepRun {
  readonly trial: number;
  readonly settings: TrialSettings;
  readonly seed: number;
  readonly folder: string;
  /** Counted from 1. */
  readonly rung: number;
  /** Fraction of the run that is complete at the rung's end. */
  readonly share: number;
}

export interface SweepCallbacks extends RunOptions {
  /** Ends the sweep after the current update, with a checkpoint. */
  readonly signal?: AbortSignal;
  /** Called with the plan before the first run. */
  readonly onPlan?: (plan: SweepPlan, config: SweepConfig) => void;
  readonly onRunStart?: (run: SweepRun) => void;
  readonly onProgress?: (event: TrainProgress, run: SweepRun) => void;
  /**
   * Called with the number of evaluation episodes that ended since the last call, and their total.
   */
  readonly onEvaluation?: (finished: number, total: number) => void;
  readonly onRungResult?: (result: RungResult, run: SweepRun) => void;
  readonly onFailure?: (reason: string, run: SweepRun) => void;
}

/** Trials of a finished sweep, best first. */
export interface SweepResult {
  readonly config: SweepConfig;
  /** From best to worst; failed trials are last. */
  readonly trials: readonly TrialResult[];
  /** The best trial; undefined if none was compared. */
  readonly best: TrialResult | undefined;
  /** Whether `signal` ended the sweep early. */
  readonly isInterrupted: boolean;
}

/**
 * Trains each trial with each seed, one run after the other, and compares the trials by a metric.
 * FOLDER gets runs/ with a run folder per run, sweep.json with the sweep's settings, results.json,
 * best.json with the best trial's settings, and charts. In the folder of the same sweep, it resumes
 * without repeating finished runs.
 *
 * A trial with conflicting settings or a failing run is recorded as failed, and the sweep
 * continues. @throws INVALID_ARGUMENT for unknown settings, for a metric that updates do not
 * record, and if no trial is valid; INVALID_STATE for the folder of another sweep; FOLDER_IN_USE;
 * FILE_WRITE_FAILED; and errors of opening the first run.
 */
export async function runSweep(
  options: SweepOptions,
  folder: string,
  callbacks: SweepCallbacks = {},
): Promise<SweepResult> {
  const config = resolveSweepConfig(await loadSweepAlgorithms(options));
  const plan = planSweep(config);
  await checkSource(plan);
  return openLocked(folder, checkWritable, async (lock) => {
    try {
      return await runLocked(config, plan, lock, callbacks);
    } finally {
      await lock.release();
    }
  });
}

async function runLocked(
  config: SweepConfig,
  plan: SweepPlan,
  lock: FolderLock,
  callbacks: SweepCallbacks,
): Promise<SweepResult> {
  const { folder } = lock;
  const sweepFolder = await SweepFolder.open(lock, config, plan);
  callbacks.onPlan?.(plan, config);
  const isFinished = await runAllRungs(config, plan, sweepFolder, callbacks);
  await sweepFolder.write(isFinished);
  const trials = rankTrials(sweepFolder.trials, config.goal);
  const [first] = trials;
  const best = first.value === undefined || first.failure !== undefined ? undefined : first;
  if (isFinished && best !== undefined) {
    await writeJson(join(folder, BEST_FILE), plan.trials[best.trial - 1].options);
    await writeCharts(folder, config, trials);
  }
  return { config, trials, best, isInterrupted: !isFinished };
}

/**
 * Checks what the first valid trial trains on. @throws what opening an environment, or reading
 * prompts and modules, throws
 */
async function checkSource({ trials }: SweepPlan): Promise<void> {
  const { options, config } = trials.find((trial) => trial.config !== undefined)!;
  if (isExampleRun(options)) {
    await hashFile(options.data);
    return;
  }
  if (isPromptRun(options)) {
    await hashFile(options.data!);
    const { rewardFuncs = [] } = options;
    if (rewardFuncs.length === 0)
      throw invalidArgument("A sweep compares runs on prompts by their reward. Set `rewardFuncs`.");
    await loadRewardFunctions(rewardFuncs);
    await loadTools(options.tools ?? []);
    return;
  }
  const envs = new EnvSupply(new RunEnv(config as TrainConfig));
  await envs.read(readTextEnv).finally(async () => envs.close());
}

/** Returns whether all runs are complete; false if the signal aborted. */
async function runAllRungs(
  config: SweepConfig,
  plan: SweepPlan,
  sweepFolder: SweepFolder,
  callbacks: SweepCallbacks,
): Promise<boolean> {
  const { seeds, goal } = config;
  const runnable = plan.trials.filter((trial) => trial.failure === undefined).map(({ number }) => number);
  for (const [i, { trials: count, share }] of plan.rungs.entries()) {
    const rung = i + 1;
    if (rung > 1) warnOnTie(sweepFolder.trials, rung - 1, callbacks.onWarning);
    const selected =
      rung === 1 ? runnable : selectPromoted(sweepFolder.trials, { rung, count, seeds: seeds.length, goal });
    for (const number of selected)
      for (const seed of seeds) {
        if (callbacks.signal?.aborted === true) return false;
        const trial = plan.trials[number - 1];
        const run = createSweepRun(trial, seed, rung, share, sweepFolder);
        if (!isDue(sweepFolder, run, seeds)) continue;
        if (!(await runTrial(trial, run, config, sweepFolder, callbacks))) return false;
      }
  }
  return true;
}

/** Warns if all trials are equal, which usually means that the rung was too short. */
function warnOnTie(trials: readonly TrialResult[], rung: number, onWarning: SweepCallbacks["onWarning"]): void {
  const compared = trials.filter((trial) => trial.rung === rung && trial.failure === undefined);
  if (compared.length < 2 || compared.some(({ value }) => value !== compared[0].value)) return;
  onWarning?.(
    `All trials are equal at the end of rung ${rung}, so the first ones continue. Metrics describe the policy before the update: ` +
      "make the runs longer, the batches smaller or the rungs fewer.",
  );
}

function createSweepRun(trial: Trial, seed: number, rung: number, share: number, sweepFolder: SweepFolder): SweepRun {
  const { number, settings } = trial;
  return {
    trial: number,
    settings,
    seed,
    rung,
    share,
    folder: join(sweepFolder.path, sweepFolder.getRunFolder(number, seed)),
  };
}

/**
 * Whether a run is still to be made: not if it completed the rung, or if the trial failed with
 * another seed.
 */
function isDue(sweepFolder: SweepFolder, { trial, seed, rung }: SweepRun, seeds: readonly number[]): boolean {
  if (seeds.some((other) => sweepFolder.getRun(trial, other).failure !== undefined)) return false;
  return !sweepFolder.getRun(trial, seed).rungResults.some((result) => result.rung === rung);
}

async function runTrial(
  { options }: Trial,
  run: SweepRun,
  config: SweepConfig,
  sweepFolder: SweepFolder,
  { onPlan: _onPlan, onRunStart, onProgress, onRungResult, onFailure, ...rungOptions }: SweepCallbacks,
): Promise<boolean> {
  const { trial, seed, folder, rung, share } = run;
  onRunStart?.(run);
  const outcome = await runRung({ options: { ...options, seed }, folder, rung, share }, config, {
    ...rungOptions,
    onProgress: (event) => onProgress?.(event, run),
  }).catch((error: unknown) => ({ failure: getTrialFailure(error, sweepFolder) }));
  if (outcome === undefined) return false;
  await sweepFolder.recordOutcome(trial, seed, outcome);
  if ("failure" in outcome) onFailure?.(outcome.failure, run);
  else onRungResult?.(outcome, run);
  return true;
}

/** Errors of a run folder, which do not depend on the settings of a trial. */
const FOLDER_ERRORS: ReadonlySet<string> = new Set<ErrorCode>(["FILE_WRITE_FAILED", "FOLDER_IN_USE"]);

/**
 * Returns the reason of a failure that concerns one trial; rethrows errors that would fail all
 * trials.
 */
function getTrialFailure(error: unknown, sweepFolder: SweepFolder): string {
  const isSetupError = error instanceof RunOpenError || error instanceof MissingMetricError;
  const reason = isSetupError ? error.reason : error;
  if (reason instanceof LlamaGymError && FOLDER_ERRORS.has(reason.code)) throw reason;
  // Before the first result, the cause is rather the model or a name than the trial.
  if (isSetupError && sweepFolder.trials.every(({ runs }) => runs.length === 0)) throw reason;
  return reason instanceof LlamaGymError ? reason.message : String(reason);
}
