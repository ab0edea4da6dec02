import type { LossStatistics, ScoredTrajectory, TurnSample } from "./algorithm-definition.js";
import type { Metrics } from "./learner.js";
import { concatenate, meanByName, sum } from "./shared/arrays.js";
import { mean, nanMean, nanStd } from "./shared/statistics.js";
import type { UpdateResult } from "./update/policy-updater.js";

/** One optimizer step on a minibatch. */
export interface StepOutcome {
  readonly turns: readonly TurnSample[];
  readonly result: UpdateResult;
  /** Whether the algorithm discarded the step and ended the update. */
  readonly isLast: boolean;
  /** Whether the reference policy moved after the step. */
  readonly movesReference: boolean;
}

/** Returns episode rewards under TRL's metric names. */
export function rewardMetrics(scored: readonly ScoredTrajectory[], hasSignal: readonly boolean[]): Metrics {
  const rewards = scored.map(({ turns }) => sum(turns.map(({ turn }) => turn.reward)));
  const groups = new Set(scored.map(({ group }) => group));
  const informative = new Set(scored.flatMap(({ group }, i) => (hasSignal[i] ? [group] : [])));
  return {
    reward: nanMean(rewards),
    reward_std: nanStd(rewards),
    frac_reward_zero_std: 1 - informative.size / groups.size,
  };
}

/** Returns the metrics of all steps of an update; `summarize` adds the algorithm's. */
export function lossMetrics(
  outcomes: readonly StepOutcome[],
  summarize: (statistics: LossStatistics) => Metrics,
): Metrics {
  const results = outcomes.map(({ result }) => result);
  const counts = {
    num_optimizer_steps: results.filter(({ skipped }) => !skipped).length,
    num_skipped_steps: outcomes.filter(({ result, isLast }) => result.skipped && !isLast).length,
  };
  if (results.length === 0) return counts;
  const means = meanByName(results.map(({ statistics }) => statistics));
  const perToken = Object.fromEntries(
    Object.keys(results[0].perTurn).map((name) => [name, concatenate(results.flatMap(({ perTurn }) => perTurn[name]))]),
  );
  const gradNorms = results.flatMap(({ gradNorm }) => gradNorm ?? []);
  return {
    loss: means.loss!,
    ...summarize({ means, perToken, steppedTurns: outcomes.flatMap(({ turns }) => turns) }),
    ...(gradNorms.length === 0 ? {} : { grad_norm: mean(gradNorms) }),
    learning_rate: results.at(-1)!.learningRate,
    ...counts,
  };
}
