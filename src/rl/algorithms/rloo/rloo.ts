import type { TurnSample } from "../algorithm-definition.js";
import { defineAlgorithm } from "../define-algorithm.js";
import { sum } from "../shared/arrays.js";
import { groupRollout } from "../shared/group-rollout.js";
import { rlooAdvantages } from "./advantages.js";
import { rlooInputs, rlooLoss, rlooMetrics, type RlooSequence } from "./loss.js";
import { resolveRlooConfig, rlooSettings } from "./settings.js";

/**
 * REINFORCE leave-one-out (Ahmadian et al. 2024) on the turns of complete episodes: the baseline of
 * a turn is the mean return of the other episodes of its group at the same step.
 */
export const rloo = defineAlgorithm({
  name: "rloo",
  title: "RLOO",
  settings: rlooSettings,
  resolve: resolveRlooConfig,
  klSetting: "beta",
  hasTurnAdvantages: true,
  rollout: (config) =>
    groupRollout(config, { groupSize: config.numGenerations, isGroupRelative: !config.normalizeAdvantages }),
  advantages: rlooAdvantages,
  loss: rlooLoss,
  inputs: (turns, totals, config) => rlooInputs(turns.map(toRlooSequence), totals, config),
  metrics: ({ perToken, steppedTurns }, _, config) =>
    rlooMetrics({ ratio: perToken.ratio!, entropy: perToken.entropy }, steppedTurns.map(toRlooSequence), config),
});

function toRlooSequence({ oldLogProbs, advantages }: TurnSample): RlooSequence {
  return { length: oldLogProbs.length, oldLogProb: sum(oldLogProbs), advantage: advantages[0] };
}
