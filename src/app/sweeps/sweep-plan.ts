import { invalidArgument } from "../../core/settings.js";
import { LlamaGymError } from "../../core/errors.js";
import { resolveTrainConfig, type TrainConfig, type TrainOptions } from "../runs/run-settings.js";
import { planHalvingRungs, singleRung, type Rung } from "./halving-rungs.js";
import type { SweepConfig } from "./sweep-settings.js";
import { enumerateGrid, sampleTrials, type TrialSettings } from "./trial-settings.js";

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
  const settings = method === "grid" ? enumerateGrid(search) : sampleTrials(search, config.trials!, searchSeed!);
  const trials = settings.map((trialSettings, i) => makeTrial(config, i + 1, trialSettings));
  if (trials.every(({ failure }) => failure !== undefined))
    throw invalidArgument(`No trial of the sweep can be: ${trials[0].failure!}`);
  const count = trials.length;
  return {
    trials,
    rungs: method === "halving" ? planHalvingRungs(count, { reduction: reduction!, rungs }) : singleRung(count),
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
