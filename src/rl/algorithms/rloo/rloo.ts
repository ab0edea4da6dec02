import type { CausalLM } from "../../../models/causal-lm.js";
import type { LearnerContext } from "../learner.js";
import type {
  AdvantageResult,
  AlgorithmDefinition,
  ScoredTrajectory,
  ScoredTurn,
  TurnSample,
} from "../algorithm-definition.js";
import { PolicyLearner } from "../policy-learner.js";
import { sum } from "../shared/arrays.js";
import { turnReturns } from "../shared/returns.js";
import { mean, type NumberArray } from "../shared/statistics.js";
import { clipReward, scaleAdvantages, leaveOneOutAdvantages } from "./advantages.js";
import { resolveRlooConfig, type RlooConfig, type RlooOptions } from "./settings.js";
import { rlooInputs, rlooLoss, rlooMetrics, type RlooSequence } from "./loss.js";

/**
 * REINFORCE leave-one-out (Ahmadian et al. 2024) on turns of whole episodes: a turn's credit is compared with those of the other
 * episodes of its group at the same step. Throws INVALID_ARGUMENT for settings that cannot be, INVALID_STATE for a model that cannot
 * be trained so.
 */
export async function createRlooLearner(
  model: CausalLM,
  options: RlooOptions,
  context: LearnerContext,
): Promise<PolicyLearner> {
  return PolicyLearner.create(model, rlooDefinition(resolveRlooConfig(options)), context);
}

function rlooDefinition(config: RlooConfig): AlgorithmDefinition {
  return {
    name: "RLOO",
    config,
    sharesStart: true,
    isGroupRelative: !config.normalizeAdvantages,
    loss: (nodes) => rlooLoss(nodes, config),
    entropy: config.entropyCoef === 0 ? "value" : "gradient",
    klSetting: config.beta > 0 ? "beta" : undefined,
    needsEntropy: false,
    hasRegularizer: config.entropyCoef > 0,
    advantages: (trajectories) => computeAdvantages(trajectories, config),
    inputs: (turns, totals) => rlooInputs(turns.map(toRlooSequence), totals, config),
    metrics: ({ perToken }, turns) =>
      rlooMetrics({ ratio: perToken.ratio!, entropy: perToken.entropy }, turns.map(toRlooSequence), config),
  };
}

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

/** log pi - log pi_ref of a turn's decisions together; 0 where the reference was not computed. */
function turnKl({ oldLogProbs, refLogProbs }: ScoredTurn): number {
  return refLogProbs === undefined ? 0 : sum(oldLogProbs) - sum(refLogProbs);
}
