import type { AdvantageResult, ScoredTrajectory, ScoredTurn, TurnSample } from "../algorithm-definition.js";
import { defineAlgorithm } from "../define-algorithm.js";
import { sum } from "../shared/arrays.js";
import { groupRollout } from "../shared/group-rollout.js";
import { turnReturns } from "../shared/returns.js";
import { mean, type NumberArray } from "../shared/statistics.js";
import { clipReward, leaveOneOutAdvantages, scaleAdvantages } from "./advantages.js";
import { rlooInputs, rlooLoss, rlooMetrics, type RlooSequence } from "./loss.js";
import { resolveRlooConfig, rlooSettings, type RlooConfig } from "./settings.js";

/**
 * REINFORCE leave-one-out (Ahmadian et al. 2024) on the turns of complete episodes: the baseline of a turn is the mean return of the
 * other episodes of its group at the same step.
 */
export const rloo = defineAlgorithm({
  name: "rloo",
  title: "RLOO",
  settings: rlooSettings,
  resolve: resolveRlooConfig,
  klSetting: "beta",
  rollout: (config) =>
    groupRollout(config, { groupSize: config.numGenerations, isGroupRelative: !config.normalizeAdvantages }),
  advantages: computeAdvantages,
  loss: rlooLoss,
  inputs: (turns, totals, config) => rlooInputs(turns.map(toRlooSequence), totals, config),
  metrics: ({ perToken, steppedTurns }, _, config) =>
    rlooMetrics({ ratio: perToken.ratio!, entropy: perToken.entropy }, steppedTurns.map(toRlooSequence), config),
});

function toRlooSequence({ oldLogProbs, advantages }: TurnSample): RlooSequence {
  return { length: oldLogProbs.length, oldLogProb: sum(oldLogProbs), advantage: advantages[0] };
}

function computeAdvantages(trajectories: readonly ScoredTrajectory[], config: RlooConfig): AdvantageResult {
  const kls = trajectories.map(({ turns }) => turns.map(turnKl));
  const returns = trajectories.map(({ turns }, i) =>
    turnReturns(
      turns.map(({ turn }, t) => clipReward(turn.reward, config) - config.beta * kls[i][t]),
      config,
    ),
  );
  const advantages = scaleAdvantages(
    leaveOneOutAdvantages(
      returns,
      trajectories.map(({ group }) => group),
    ),
    config,
  );
  return {
    advantages: trajectories.map(({ turns }, i) =>
      turns.map(({ oldLogProbs }, t): NumberArray => new Float64Array(oldLogProbs.length).fill(advantages[i][t])),
    ),
    metrics: config.beta === 0 ? {} : { kl: mean(kls.flat()) },
  };
}

/** Returns log pi - log pi_ref summed over a turn's decisions; 0 where the reference was not scored. */
function turnKl({ oldLogProbs, refLogProbs }: ScoredTurn): number {
  return refLogProbs === undefined ? 0 : sum(oldLogProbs) - sum(refLogProbs);
}
