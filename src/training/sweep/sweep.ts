import { join } from "node:path";
import { LlamaGymError } from "../../errors.js";
import { writeJson } from "../../files/index.js";
import { envMaker, readableEnv } from "../make-agent.js";
import { checkWritable } from "../run-folder.js";
import type { RunOptions } from "../run.js";
import type { TrainingEvent } from "../trainer.js";
import { planSweep, type SweepPlan, type Trial } from "./plan.js";
import { writePictures } from "./pictures.js";
import { promoted, ranked, type Measure, type TrialResult } from "./results.js";
import { resolveSweep, type SweepConfig, type SweepOptions } from "./settings.js";
import { MetricMissing, OpeningFailed, playStage } from "./stage.js";
import { SweepFolder } from "./sweep-folder.js";
import type { TrialSettings } from "./trial-settings.js";

/** The settings of the best trial, as `llamagym train --config` takes them. */
export const BEST_FILE = "best.json";

/** A run of a sweep that begins or goes on. */
export interface SweepStage {
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
export interface SweepWatch extends RunOptions {
  /** Ends the sweep after the update that is under way, which is saved. */
  readonly signal?: AbortSignal;
  /** Told what will be done, before the first run. */
  readonly onPlan?: (plan: SweepPlan, config: SweepConfig) => void;
  readonly onStage?: (stage: SweepStage) => void;
  readonly onProgress?: (event: TrainingEvent, stage: SweepStage) => void;
  /** Told of the episodes of greedy play that have ended since the last call, and how many there are to be. */
  readonly onEvaluation?: (ended: number, total: number) => void;
  readonly onMeasure?: (measure: Measure, stage: SweepStage) => void;
  readonly onFailure?: (reason: string, stage: SweepStage) => void;
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
export async function runSweep(options: SweepOptions, folder: string, watch: SweepWatch = {}): Promise<SweepResult> {
  const config = resolveSweep(options);
  const plan = planSweep(config);
  await checkEnvironment(plan);
  await checkWritable(folder);
  const kept = await SweepFolder.open(folder, config, plan);
  watch.onPlan?.(plan, config);
  const isFinished = await playAll(config, plan, kept, watch);
  await kept.write(isFinished);
  const trials = ranked(kept.trials, config.goal);
  const [first] = trials;
  const best = first.value === undefined || first.failure !== undefined ? undefined : first;
  if (isFinished && best !== undefined) {
    await writeJson(join(folder, BEST_FILE), plan.trials[best.trial - 1].options);
    await writePictures(folder, config, trials);
  }
  return { config, trials, best, isInterrupted: !isFinished };
}

/** Throws what keeps the first trial that can be from being played. */
async function checkEnvironment({ trials }: SweepPlan): Promise<void> {
  const config = trials.find((trial) => trial.config !== undefined)!.config!;
  await readableEnv(envMaker(config), config.env);
}

/** Gives whether all has been done; false where the signal came. */
async function playAll(config: SweepConfig, plan: SweepPlan, kept: SweepFolder, watch: SweepWatch): Promise<boolean> {
  const { seeds, goal } = config;
  const possible = plan.trials.filter((trial) => trial.failure === undefined).map(({ number }) => number);
  for (const [i, { trials: count, share }] of plan.rungs.entries()) {
    const rung = i + 1;
    if (rung > 1) sayTie(kept.trials, rung - 1, watch.warn);
    const chosen = rung === 1 ? possible : promoted(kept.trials, { rung, count, seeds: seeds.length, goal });
    for (const number of chosen)
      for (const seed of seeds) {
        if (watch.signal?.aborted === true) return false;
        const trial = plan.trials[number - 1];
        const stage = stageOf(trial, seed, rung, share, kept);
        if (!isDue(kept, stage, seeds)) continue;
        if (!(await play(trial, stage, config, kept, watch))) return false;
      }
  }
  return true;
}

/** Trials that are all alike were not trained for long enough to be told apart. */
function sayTie(trials: readonly TrialResult[], rung: number, warn: SweepWatch["warn"]): void {
  const compared = trials.filter((trial) => trial.rung === rung && trial.failure === undefined);
  if (compared.length < 2 || compared.some(({ value }) => value !== compared[0].value)) return;
  warn?.(
    `All trials are alike at the end of rung ${rung}, so the first ones train on. An update's numbers are of the policy before it: ` +
      "make the runs longer, the batches smaller or the rungs fewer.",
  );
}

function stageOf(trial: Trial, seed: number, rung: number, share: number, kept: SweepFolder): SweepStage {
  const { number, settings } = trial;
  return { trial: number, settings, seed, rung, share, folder: join(kept.path, kept.runFolder(number, seed)) };
}

/** A run that has been through the rung is not run again, and a trial that failed with one seed is not tried with others. */
function isDue(kept: SweepFolder, { trial, seed, rung }: SweepStage, seeds: readonly number[]): boolean {
  if (seeds.some((each) => kept.run(trial, each).failure !== undefined)) return false;
  return !kept.run(trial, seed).measures.some((measure) => measure.rung === rung);
}

async function play(
  { options }: Trial,
  stage: SweepStage,
  config: SweepConfig,
  kept: SweepFolder,
  { onPlan: _onPlan, onStage, onProgress, onMeasure, onFailure, ...watch }: SweepWatch,
): Promise<boolean> {
  const { trial, seed, folder, rung, share } = stage;
  onStage?.(stage);
  const outcome = await playStage({ options: { ...options, seed }, folder, rung, share }, config, {
    ...watch,
    onProgress: (event) => onProgress?.(event, stage),
  }).catch((error: unknown) => ({ failure: trialsOwn(error, kept) }));
  if (outcome === undefined) return false;
  await kept.keep(trial, seed, outcome);
  if ("failure" in outcome) onFailure?.(outcome.failure, stage);
  else onMeasure?.(outcome, stage);
  return true;
}

/** Why a trial failed, where it is the trial that did; throws what would keep the others from being tried as well. */
function trialsOwn(error: unknown, kept: SweepFolder): string {
  const isOfAll = error instanceof OpeningFailed || error instanceof MetricMissing;
  const reason = isOfAll ? error.reason : error;
  if (reason instanceof LlamaGymError && reason.code === "FILE_WRITE_FAILED") throw reason;
  // Before any run has been measured, it is the model or a name rather than a trial.
  if (isOfAll && kept.trials.every(({ runs }) => runs.length === 0)) throw reason;
  return reason instanceof LlamaGymError ? reason.message : String(reason);
}
