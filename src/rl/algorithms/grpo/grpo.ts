import type { CausalLM } from "../../../models/causal-lm.js";
import type { LearnerContext } from "../learner.js";
import type { AlgorithmDefinition, ScoredTrajectory } from "../algorithm-definition.js";
import { PolicyLearner } from "../policy-learner.js";
import { concatenate } from "../shared/arrays.js";
import { turnReturns } from "../shared/returns.js";
import type { NumberArray } from "../shared/statistics.js";
import { grpoAdvantages } from "./advantages.js";
import { groupRelativeAdvantages } from "./group-relative-advantages.js";
import { resolveGrpoConfig, type GrpoConfig, type GrpoOptions } from "./settings.js";
import { highEntropyMask } from "../shared/entropy-mask.js";
import { grpoInputs } from "./loss-inputs.js";
import { grpoLoss } from "./loss.js";
import { grpoMetrics } from "./metrics.js";

/**
 * Group relative policy optimisation (Shao et al. 2024) and its successors on turns of whole episodes.
 * Throws INVALID_ARGUMENT for settings that cannot be, INVALID_STATE for a model that cannot be trained so.
 */
export async function createGrpoLearner(
  model: CausalLM,
  options: GrpoOptions,
  context: LearnerContext,
): Promise<PolicyLearner> {
  return PolicyLearner.create(model, grpoDefinition(resolveGrpoConfig(options)), context);
}

function grpoDefinition(config: GrpoConfig): AlgorithmDefinition {
  const { grouping, baseline, entropyCoef, beta, topEntropyQuantile } = config;
  return {
    name: "GRPO",
    config,
    sharesStart: grouping !== "batch",
    isGroupRelative: grouping === "start" && (baseline === "step" || baseline === "group"),
    loss: (nodes) => grpoLoss(nodes, config),
    entropy: entropyCoef === 0 ? "value" : "gradient",
    klSetting: beta > 0 ? "beta" : undefined,
    needsEntropy: topEntropyQuantile < 1,
    hasRegularizer: entropyCoef > 0 || beta > 0,
    advantages: (trajectories) => ({ advantages: computeAdvantages(trajectories, config), metrics: {} }),
    policyMasks: topEntropyQuantile < 1 ? (turns) => entropyMaskPerTurn(turns, topEntropyQuantile) : undefined,
    inputs: (turns, totals) => grpoInputs(turns, config, totals),
    metrics: ({ perToken }, turns) => grpoMetrics({ ratio: perToken.ratio!, ...perToken }, turns, config),
  };
}

/** Each turn's advantage, for each of its decisions. */
function computeAdvantages(trajectories: readonly ScoredTrajectory[], config: GrpoConfig): NumberArray[][] {
  const advantages = advantagesPerTurn(trajectories, config);
  return trajectories.map(({ turns }, i) =>
    turns.map(({ oldLogProbs }, turn) => new Float64Array(oldLogProbs.length).fill(advantages[i][turn])),
  );
}

function advantagesPerTurn(trajectories: readonly ScoredTrajectory[], config: GrpoConfig): readonly NumberArray[] {
  const rewards = trajectories.map((trajectory) => trajectory.scores);
  if (config.multiObjectiveAggregation === "normalize_then_sum" && rewards.every((row) => row !== undefined))
    return Array.from(grpoAdvantages(rewards, config).advantages, (advantage) => [advantage]);
  const episodeReturns = trajectories.map(({ turns, group }) => ({
    group,
    returns: turnReturns(
      turns.map(({ turn }) => turn.reward),
      config,
    ),
    states: config.grouping === "observation" ? turns.map(({ turn }) => turn.prompt.join()) : undefined,
  }));
  return groupRelativeAdvantages(episodeReturns, config);
}

function entropyMaskPerTurn(
  turns: readonly { readonly entropies: NumberArray | undefined }[],
  fraction: number,
): NumberArray[] {
  const entropies = turns.map((turn) => turn.entropies!);
  const mask = highEntropyMask(concatenate(entropies), fraction);
  let start = 0;
  return entropies.map(({ length }) => mask.subarray(start, (start += length)));
}
