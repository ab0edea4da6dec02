import type { CausalLM } from "../../models/causal-lm.js";
import type { PolicyTraits } from "../learner.js";
import type { CriticFreeAlgorithm, PlayedEpisode } from "../policy/critic-free-algorithm.js";
import { CriticFreeLearner } from "../policy/critic-free-learner.js";
import { concatenate } from "../shared/arrays.js";
import { creditReturns } from "../shared/credit.js";
import type { Numbers } from "../shared/statistics.js";
import { grpoAdvantages } from "./advantages.js";
import { compareCredits } from "./comparison.js";
import { resolveGrpoConfig, type GrpoConfig, type GrpoOptions } from "./config.js";
import { highEntropyMask } from "./entropy-mask.js";
import { grpoInputs } from "./inputs.js";
import { grpoLoss } from "./loss.js";
import { grpoMetrics } from "./metrics.js";

/**
 * Group relative policy optimisation (Shao et al. 2024) and its successors on turns of whole episodes.
 * Throws INVALID_ARGUMENT for settings that cannot be, INVALID_STATE for a model that cannot be trained so.
 */
export async function createGrpoLearner(
  model: CausalLM,
  options: GrpoOptions,
  policy: PolicyTraits,
): Promise<CriticFreeLearner> {
  return CriticFreeLearner.create(model, grpoAlgorithm(resolveGrpoConfig(options)), policy);
}

function grpoAlgorithm(config: GrpoConfig): CriticFreeAlgorithm {
  const { grouping, baseline, entropyCoef, beta, topEntropyQuantile } = config;
  return {
    name: "GRPO",
    config,
    startsAlike: grouping !== "batch",
    comparesWithinGroups: grouping === "start" && (baseline === "step" || baseline === "group"),
    objective: (nodes) => grpoLoss(nodes, config),
    entropy: entropyCoef === 0 ? "value" : "gradient",
    divergenceSetting: beta > 0 ? "beta" : undefined,
    usesEntropies: topEntropyQuantile < 1,
    regularises: entropyCoef > 0 || beta > 0,
    credit: (episodes) => ({ advantages: turnAdvantages(episodes, config), metrics: {} }),
    policyMasks: topEntropyQuantile < 1 ? (turns) => divideMask(turns, topEntropyQuantile) : undefined,
    inputs: (turns, step) => grpoInputs(turns, config, step),
    metrics: ({ perToken }, turns) => grpoMetrics({ ratio: perToken.ratio!, ...perToken }, turns, config),
  };
}

/** Each turn's advantage, for each of its decisions. */
function turnAdvantages(episodes: readonly PlayedEpisode[], config: GrpoConfig): Numbers[][] {
  const found = compare(episodes, config);
  return episodes.map(({ turns }, i) =>
    turns.map(({ oldLogProbs }, turn) => new Float64Array(oldLogProbs.length).fill(found[i][turn])),
  );
}

function compare(episodes: readonly PlayedEpisode[], config: GrpoConfig): readonly Numbers[] {
  const scores = episodes.map((episode) => episode.scores);
  if (config.multiObjectiveAggregation === "normalize_then_sum" && scores.every((row) => row !== undefined))
    return Array.from(grpoAdvantages(scores, config).advantages, (advantage) => [advantage]);
  const compared = episodes.map(({ turns, group }) => ({
    group,
    credits: creditReturns(
      turns.map(({ turn }) => turn.reward),
      config,
    ),
    states: config.grouping === "observation" ? turns.map(({ turn }) => turn.prompt.join()) : undefined,
  }));
  return compareCredits(compared, config);
}

function divideMask(turns: readonly { readonly entropies: Numbers | undefined }[], share: number): Numbers[] {
  const entropies = turns.map((turn) => turn.entropies!);
  const mask = highEntropyMask(concatenate(entropies), share);
  let start = 0;
  return entropies.map(({ length }) => mask.subarray(start, (start += length)));
}
