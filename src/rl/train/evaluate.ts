import { mean } from "../../core/numbers.js";
import { printWarning } from "../../core/terminal-text.js";
import type { Agent } from "../agent/agent.js";
import { computeSuccessRate } from "./rollout-metrics.js";
import { computeExtractionShares } from "../agent/extraction/extraction-counter.js";
import { invalidArgument } from "../../core/errors.js";
import { toMakeEnv, type EnvSource } from "../../envs/index.js";
import { checkOptions, checkSettings, oneOf, type OptionNames } from "../../core/settings.js";
import { MAX_EVAL_EPISODES, trainerSettings } from "./trainer-settings.js";
import { RolloutCollector, type CollectOptions, type Rollout } from "../rollout/rollout-collector.js";
import { EnvSlot } from "../rollout/env-slot.js";
import { closeEnvs, openEnvs } from "../rollout/open-envs.js";
import { stream } from "../../core/random/streams.js";

/** Options of `evaluate`. */
export interface EvaluateOptions extends CollectOptions {
  readonly episodes: number;
  /** Number of environments stepped in parallel. Default 64. */
  readonly numEnvs?: number;
  /** Seeds environments and, above temperature 0, sampling. Default 0. */
  readonly seed?: number;
  /** "eval" (default) samples at the agent's evalTemperature, "train" as in training. */
  readonly mode?: "train" | "eval";
  /** Receives warnings about environments that could not be closed. Default: they are printed. */
  readonly onWarning?: (message: string) => void;
}

const evaluateOptionNames: OptionNames<EvaluateOptions> = {
  episodes: true,
  numEnvs: true,
  seed: true,
  mode: oneOf("train", "eval"),
  onWarning: Function,
  signal: AbortSignal,
  onProgress: Function,
};

/** Returns and metrics of evaluated episodes. */
export interface EvalResult {
  readonly episodes: number;
  readonly meanReturn: number;
  /** Standard error of the mean. */
  readonly standardError: number;
  readonly meanLength: number;
  /** Share of successful episodes, where the environment says it (`is_success` in its info). */
  readonly successRate?: number;
  /** Fraction of turns with an invalid completion. */
  readonly invalidRatio: number;
  /** Fractions of the ways in which actions were extracted, by metric name. */
  readonly extraction: Readonly<Record<string, number>>;
}

/**
 * Evaluates an agent over complete episodes, in environments of an id, a class, or a function that
 * makes one. An aborted evaluation returns the episodes completed so far.
 * @throws INVALID_ARGUMENT for numbers out of range, and what the agent and the environment throw.
 */
export async function evaluate(agent: Agent, env: EnvSource, evaluateOptions: EvaluateOptions): Promise<EvalResult> {
  checkOptions("evaluate", evaluateOptions, evaluateOptionNames);
  const {
    episodes,
    numEnvs = 64,
    seed = 0,
    mode = "eval",
    onWarning = printWarning,
    ...options
  } = evaluateOptions ?? {};
  if (episodes === undefined) throw invalidArgument("evaluate needs the number of `episodes`.");
  const makeEnv = toMakeEnv(env, "The environment of evaluate");
  const episodeSetting = { ...trainerSettings.episodes, max: MAX_EVAL_EPISODES };
  checkSettings({ ...trainerSettings, episodes: episodeSetting }, { episodes, numEnvs, seed });
  const episodeStarts = stream(seed, "evaluationStarts");
  const { settings, model } = agent;
  const envs = await openEnvs(makeEnv, Math.min(numEnvs, episodes), settings);
  try {
    const envSlots = envs.map((env, index) => {
      const random = stream(seed, "evaluation", index);
      return new EnvSlot(env, { newEpisode: () => agent.newEpisode(random, mode), random, settings, index });
    });
    // The start of an episode does not depend on the environment slot that runs it.
    const episodeSpecs = Array.from({ length: episodes }, () => ({ seed: episodeStarts.integers(0, 2 ** 31) }));
    const collector = new RolloutCollector(envSlots);
    // Training continues with the same numbers as without an evaluation.
    return summarize(await model.runIsolated(() => collector.collectEpisodes(episodeSpecs, options)));
  } finally {
    await closeEnvs(envs, onWarning);
  }
}

function summarize({ finishedEpisodes, trajectories }: Rollout): EvalResult {
  const turns = trajectories.flatMap((trajectory) => trajectory.turns);
  const successRate = computeSuccessRate(finishedEpisodes);
  return {
    ...computeMeanAndError(finishedEpisodes.map((episode) => episode.return)),
    episodes: finishedEpisodes.length,
    meanLength: turns.length / Math.max(1, finishedEpisodes.length),
    ...(successRate === undefined ? {} : { successRate }),
    invalidRatio: turns.filter(({ isValid }) => !isValid).length / Math.max(1, turns.length),
    extraction: computeExtractionShares(turns),
  };
}

/** Computes the mean and its standard error, which is NaN for one number. */
export function computeMeanAndError(returns: readonly number[]): { meanReturn: number; standardError: number } {
  const n = returns.length;
  const meanReturn = mean(returns);
  const squaredErrors = returns.reduce((sum, value) => sum + (value - meanReturn) ** 2, 0);
  return { meanReturn, standardError: n < 2 ? Number.NaN : Math.sqrt(squaredErrors / (n - 1) / n) };
}
