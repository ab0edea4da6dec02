import { invalid } from "../../algorithms/shared/settings.js";
import { LlamaGymError } from "../../errors.js";
import { resolveTrainConfig, type TrainConfig, type TrainOptions } from "../settings.js";
import { halvingRungs, wholeRuns, type Rung } from "./halving.js";
import type { SweepConfig } from "./settings.js";
import { gridTrials, randomTrials, type TrialSettings } from "./trial-settings.js";

/** A combination that a sweep tries. */
export interface Trial {
  /** From 1. */
  readonly number: number;
  readonly settings: TrialSettings;
  /** What its runs are given, but for their seeds. */
  readonly options: TrainOptions;
  /** The same as a run decides it; undefined where the settings do not go together. */
  readonly config: TrainConfig | undefined;
  /** Why not. */
  readonly failure: string | undefined;
}

/** What a sweep does, in order. */
export interface SweepPlan {
  readonly trials: readonly Trial[];
  readonly rungs: readonly Rung[];
}

/**
 * All trials and how long they are trained. A trial whose settings do not go together has failed before it begins; where that is
 * so of all, it throws INVALID_ARGUMENT with the first one's reason.
 */
export function planSweep(config: SweepConfig): SweepPlan {
  const { method, search, searchSeed, reduction, rungs } = config;
  const settings = method === "grid" ? gridTrials(search) : randomTrials(search, config.trials!, searchSeed!);
  const trials = settings.map((own, i) => makeTrial(config, i + 1, own));
  if (trials.every(({ failure }) => failure !== undefined))
    throw invalid(`No trial of the sweep can be: ${trials[0].failure!}`);
  const count = trials.length;
  return {
    trials,
    rungs: method === "halving" ? halvingRungs(count, { reduction: reduction!, rungs }) : wholeRuns(count),
  };
}

function makeTrial({ env, envOptions, train }: SweepConfig, number: number, settings: TrialSettings): Trial {
  const options = { env, envOptions, ...train, ...settings } as TrainOptions;
  try {
    return { number, settings, options, config: resolveTrainConfig(options), failure: undefined };
  } catch (error) {
    if (!(error instanceof LlamaGymError)) throw error;
    return { number, settings, options, config: undefined, failure: error.message };
  }
}
