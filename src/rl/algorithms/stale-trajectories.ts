import type { Trajectory } from "../rollout/trajectory.js";
import type { AdvantageResult, ScoredTrajectory } from "./algorithm-definition.js";
import { mean } from "./shared/statistics.js";
import { decisionIndices } from "./update/turn-batch.js";

/**
 * Maximum ratio between the policy before the update and the older one that sampled, as in AReaL
 * and prime-rl.
 */
const MAX_BEHAVIOR_RATIO = 2;

/** Whether weights other than the trained ones sampled the trajectory. */
export const isStale = ({ staleness = 0 }: Trajectory): boolean => staleness > 0;

/**
 * Applies the decoupled objective (Hilton et al. 2021; AReaL, Fu et al. 2025) to trajectories of
 * older weights: the loss compares with the policy before the update (`oldLogProbs`), and the ratio
 * of that policy to the one that sampled, truncated at MAX_BEHAVIOR_RATIO, weighs each decision. As
 * a positive factor of the loss it is a factor of the advantage.
 */
export function weighStaleAdvantages<State>(
  trajectories: readonly Trajectory[],
  scored: readonly ScoredTrajectory[],
  result: AdvantageResult<State>,
): AdvantageResult<State> {
  if (!trajectories.some(isStale)) return result;
  const ratios: number[] = [];
  const advantages = scored.map(({ turns }, i) =>
    turns.map(({ turn, oldLogProbs }, t) => {
      const values = result.advantages[i][t];
      if (!isStale(trajectories[i])) return values;
      const decisions = decisionIndices(turn);
      return Float64Array.from(oldLogProbs, (logProb, d) => {
        const ratio = Math.exp(logProb - turn.logProbs[decisions[d]]);
        ratios.push(ratio);
        return values[d] * Math.min(ratio, MAX_BEHAVIOR_RATIO);
      });
    }),
  );
  const metrics = {
    ...result.metrics,
    "staleness/mean": mean(trajectories.map(({ staleness = 0 }) => staleness)),
    "importance/mean": mean(ratios),
    "importance/clipped": mean(ratios.map((ratio) => (ratio > MAX_BEHAVIOR_RATIO ? 1 : 0))),
  };
  return { ...result, advantages, metrics };
}
