import { LlamaGymError, invalidArgument } from "../../core/errors.js";
import { resolvePromptRunConfig, type PromptRunConfig, type PromptRunOptions } from "../runs/prompt-run-settings.js";
import { resolveTrainConfig, type TrainConfig, type TrainOptions } from "../runs/run-settings.js";
import { planHalvingRungs, singleRung, type Rung } from "./halving-rungs.js";
import type { SweepConfig } from "./sweep-settings.js";
import { resolvePreferenceRunConfig, type PreferenceRunConfig } from "../runs/preference-run-settings.js";
import { resolveSftRunConfig, type SftRunConfig } from "../runs/sft-run-settings.js";
import { findExampleAlgorithm, getTrialSettings, isOnPrompts, type ExampleTrialOptions } from "./search-space.js";
import { enumerateGrid, sampleTrials, type TrialSettings } from "./trial-settings.js";

/** Options of a run in an environment, on prompts, or on examples. */
export type TrialOptions = TrainOptions | PromptRunOptions | ExampleTrialOptions;

/** Whether the options belong to a run on a file of examples. */
export function isExampleRun(options: TrialOptions): options is ExampleTrialOptions {
  return isOnPrompts(options) && findExampleAlgorithm(options) !== undefined;
}

/** Whether the options belong to a run on prompts. */
export function isPromptRun(options: TrialOptions): options is PromptRunOptions {
  return isOnPrompts(options) && !isExampleRun(options);
}

function resolveTrial(options: TrialOptions): Trial["config"] {
  if (isPromptRun(options)) return resolvePromptRunConfig(options);
  if (!isExampleRun(options)) return resolveTrainConfig(options);
  const { algorithm, ...given } = options;
  return algorithm === "sft" ? resolveSftRunConfig(given) : resolvePreferenceRunConfig({ ...given, algorithm });
}

/** A combination of settings to try. */
export interface Trial {
  /** Counted from 1. */
  readonly number: number;
  readonly settings: TrialSettings;
  /** Options of its runs, without seeds. */
  readonly options: TrialOptions;
  /** The resolved options; undefined for conflicting settings. */
  readonly config: TrainConfig | PromptRunConfig | SftRunConfig | PreferenceRunConfig | undefined;
  /** Describes the conflict. */
  readonly failure: string | undefined;
}

/** The trials and rungs of a sweep, in order. */
export interface SweepPlan {
  readonly trials: readonly Trial[];
  readonly rungs: readonly Rung[];
}

/**
 * Plans the trials and rungs of a sweep. A trial with conflicting settings is planned as failed.
 * @throws INVALID_ARGUMENT with the first conflict if all trials have one.
 */
export function planSweep(config: SweepConfig): SweepPlan {
  const { method, search, searchSeed, reduction, rungs } = config;
  const table = getTrialSettings(config.train, search);
  const settings =
    method === "grid" ? enumerateGrid(search, table) : sampleTrials(search, config.trials!, searchSeed!, table);
  const trials = settings.map((trialSettings, i) => makeTrial(config, i + 1, trialSettings));
  if (trials.every(({ failure }) => failure !== undefined))
    throw invalidArgument(`No trial of the sweep is valid: ${trials[0].failure!}`);
  const count = trials.length;
  return {
    trials,
    rungs: method === "halving" ? planHalvingRungs(count, { reduction: reduction!, rungs }) : singleRung(count),
  };
}

function makeTrial({ env, envOptions, train }: SweepConfig, number: number, settings: TrialSettings): Trial {
  const shared = isOnPrompts(train) ? { algorithm: "grpo" } : { env, envOptions };
  const options = { ...shared, ...train, ...settings } as unknown as TrialOptions;
  try {
    return { number, settings, options, config: resolveTrial(options), failure: undefined };
  } catch (error) {
    if (!(error instanceof LlamaGymError)) throw error;
    return { number, settings, options, config: undefined, failure: error.message };
  }
}
