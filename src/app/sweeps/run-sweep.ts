import { join } from "node:path";
import { LlamaGymError } from "../../core/errors.js";
import { writeJson } from "../../models/files/index.js";
import { createEnvFactory, requireTextEnv } from "../runs/make-text-agent.js";
import { checkWritable } from "../runs/run-folder.js";
import type { RunOptions } from "../runs/run.js";
import type { TrainProgress } from "../../rl/train/train-loop.js";
import { planSweep, type SweepPlan, type Trial } from "./sweep-plan.js";
import { writeCharts } from "./charts.js";
import { selectPromoted, rankTrials, type RungResult, type TrialResult } from "./trial-result.js";
import { resolveSweepConfig, type SweepConfig, type SweepOptions } from "./sweep-settings.js";
import { MissingMetricError, RunOpenError, runRung } from "./run-rung.js";
import { SweepFolder } from "./sweep-folder.js";
import type { TrialSettings } from "./trial-settings.js";

/** The settings of the best trial, as `llamagym train --config` takes them. */
export const BEST_FILE = "best.json";

/** A run of a sweep that begins or goes on. */
export interface SweepRun {
  readonly trial: number;
  readonly settings: TrialSettings;
  readonly seed: number;
  readonly folder: string;
  /** From 1. */
  readonly rung: number;
  /** How much of the run is to be done at the rung's end. */
  readonly share: number;
}

/** Who watches a sweep. */
export interface SweepCallbacks extends RunOptions {
  /** Ends the sweep after the update that is under way, which is saved. */
  readonly signal?: AbortSignal;
  /** Told what will be done, before the first run. */
  readonly onPlan?: (plan: SweepPlan, config: SweepConfig) => void;
  readonly onRunStart?: (run: SweepRun) => void;
  readonly onProgress?: (event: TrainProgress, run: SweepRun) => void;
  /** Told of the episodes of greedy play that have ended since the last call, and how many there are to be. */
  readonly onEvaluation?: (finished: number, total: number) => void;
  readonly onRungResult?: (result: RungResult, run: SweepRun) => void;
  readonly onFailure?: (reason: string, run: SweepRun) => void;
}

export interface SweepResult {
  readonly config: SweepConfig;
  /** Best first; those that failed are the last. */
  readonly trials: readonly TrialResult[];
  /** The first of them; undefined where none has been compared. */
  readonly best: TrialResult | undefined;
  /** True when `signal` ended it. */
  readonly isInterrupted: boolean;
}

/**
 * Tries settings: trains each trial with each seed, one run after the other, and compares them by a metric. Each run is a run
 * folder of its own below FOLDER/runs; sweep.json says what is tried, results.json what came of it so far, and at the end
 * best.json the best trial's settings, with pictures beside. In the folder of the same sweep it goes on: what is finished is not run again.
 *
 * A trial whose settings do not go together, or that fails while it trains, has failed with its reason; the sweep goes on. Throws
 * INVALID_ARGUMENT for settings that no run has, for a metric that updates do not record, and where no trial can be; INVALID_STATE
 * for the folder of another sweep; FILE_WRITE_FAILED; and what keeps the first run from opening.
 */
export async function runSweep(
  options: SweepOptions,
  folder: string,
  callbacks: SweepCallbacks = {},
): Promise<SweepResult> {
  const config = resolveSweepConfig(options);
  const plan = planSweep(config);
  await checkEnv(plan);
  await checkWritable(folder);
  const sweepFolder = await SweepFolder.open(folder, config, plan);
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

/** Throws what keeps the first trial that can be from being played. */
async function checkEnv({ trials }: SweepPlan): Promise<void> {
  const config = trials.find((trial) => trial.config !== undefined)!.config!;
  await requireTextEnv(createEnvFactory(config), config.env);
}

/** Gives whether all has been done; false where the signal came. */
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

/** Trials that are all alike were not trained for long enough to be told apart. */
function warnOnTie(trials: readonly TrialResult[], rung: number, onWarning: SweepCallbacks["onWarning"]): void {
  const compared = trials.filter((trial) => trial.rung === rung && trial.failure === undefined);
  if (compared.length < 2 || compared.some(({ value }) => value !== compared[0].value)) return;
  onWarning?.(
    `All trials are alike at the end of rung ${rung}, so the first ones train on. An update's numbers are of the policy before it: ` +
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

/** A run that has been through the rung is not run again, and a trial that failed with one seed is not tried with others. */
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

/** Why a trial failed, where it is the trial that did; throws what would keep the others from being tried as well. */
function getTrialFailure(error: unknown, sweepFolder: SweepFolder): string {
  const isSetupError = error instanceof RunOpenError || error instanceof MissingMetricError;
  const reason = isSetupError ? error.reason : error;
  if (reason instanceof LlamaGymError && reason.code === "FILE_WRITE_FAILED") throw reason;
  // Before any run has been measured, it is the model or a name rather than a trial.
  if (isSetupError && sweepFolder.trials.every(({ runs }) => runs.length === 0)) throw reason;
  return reason instanceof LlamaGymError ? reason.message : String(reason);
}
