import type { CausalLM } from "../../../models/causal-lm.js";
import type { LearnerContext } from "../learner.js";
import type { AdvantageResult, AlgorithmDefinition, ScoredTrajectory, ScoredTurn } from "../algorithm-definition.js";
import { PolicyLearner } from "../policy-learner.js";
import { concatenate, sum } from "../shared/arrays.js";
import { perTokenKl } from "../shared/kl.js";
import { mean, type NumberArray } from "../shared/statistics.js";
import { reinforceAdvantages } from "./advantages.js";
import { resolveReinforceConfig, type ReinforceConfig, type ReinforceOptions } from "./settings.js";
import { reinforceInputs, reinforceLoss } from "./loss.js";

/**
 * REINFORCE++ (Hu et al. 2025) on turns of whole episodes. Throws INVALID_ARGUMENT for settings that cannot be, INVALID_STATE for a
 * model that cannot be trained so.
 */
export async function createReinforceLearner(
  model: CausalLM,
  options: ReinforceOptions,
  context: LearnerContext,
): Promise<PolicyLearner> {
  return PolicyLearner.create(model, reinforceDefinition(resolveReinforceConfig(options)), context);
}

function reinforceDefinition(config: ReinforceConfig): AlgorithmDefinition {
  const { entropyCoef, klCoef, numGenerations } = config;
  return {
    name: "REINFORCE++",
    config,
    sharesStart: numGenerations > 1,
    isGroupRelative: config.baseline === "group",
    loss: (nodes) => reinforceLoss(nodes, config),
    entropy: entropyCoef === 0 ? "value" : "gradient",
    klSetting: klCoef > 0 ? "klCoef" : undefined,
    needsEntropy: false,
    advantages: (trajectories) => computeAdvantages(trajectories, config),
    hasRegularizer: entropyCoef > 0,
    inputs: (turns, { tokens, entropyFactor }) =>
      reinforceInputs(
        {
          oldLogProbs: concatenate(turns.map(({ oldLogProbs }) => oldLogProbs)),
          advantages: concatenate(turns.map(({ advantages }) => advantages)),
        },
        { total: tokens, entropyFactor: entropyCoef === 0 ? undefined : entropyFactor },
      ),
    metrics: ({ means }) => ({
      entropy: means.entropy!,
      "policy/approxkl_avg": means.approxKl!,
      "policy/clipfrac_avg": means.clipFraction!,
      "val/ratio": means.ratio!,
    }),
  };
}

function computeAdvantages(trajectories: readonly ScoredTrajectory[], config: ReinforceConfig): AdvantageResult {
  const kls = trajectories.map(({ turns }) => turns.map((turn) => tokenKls(turn, config)));
  const samples = trajectories.map(({ turns, group }, i) => {
    let end = 0;
    return {
      group,
      kls: concatenate(kls[i]),
      turns: turns.map(({ turn, oldLogProbs }) => ({ end: (end += oldLogProbs.length), reward: turn.reward })),
    };
  });
  const advantages = reinforceAdvantages(samples, config);
  return {
    advantages: samples.map(({ turns }, i) =>
      turns.map(({ end }, t): NumberArray => advantages[i].subarray(turns[t - 1]?.end ?? 0, end)),
    ),
    metrics: config.klCoef === 0 ? {} : { "objective/kl": mean(kls.flatMap((turns) => turns.map(sum))) },
  };
}

/** Of each decision, from the reference; 0 where that was not computed. */
function tokenKls({ oldLogProbs, refLogProbs }: ScoredTurn, { klPenalty }: ReinforceConfig): NumberArray {
  return refLogProbs === undefined
    ? new Float64Array(oldLogProbs.length)
    : perTokenKl(klPenalty, oldLogProbs, refLogProbs);
}
