import type { CausalLM } from "../../models/causal-lm.js";
import type { PolicyTraits } from "../learner.js";
import type { Credit, CriticFreeAlgorithm, PlayedEpisode, PlayedTurn } from "../policy/critic-free-algorithm.js";
import { CriticFreeLearner } from "../policy/critic-free-learner.js";
import { concatenate, sum } from "../shared/arrays.js";
import { perTokenKl } from "../shared/kl.js";
import { mean, type Numbers } from "../shared/statistics.js";
import { reinforceAdvantages } from "./advantages.js";
import { resolveReinforceConfig, type ReinforceConfig, type ReinforceOptions } from "./config.js";
import { reinforceInputs, reinforceLoss } from "./loss.js";

/**
 * REINFORCE++ (Hu et al. 2025) on turns of whole episodes. Throws INVALID_ARGUMENT for settings that cannot be, INVALID_STATE for a
 * model that cannot be trained so.
 */
export async function createReinforceLearner(
  model: CausalLM,
  options: ReinforceOptions,
  policy: PolicyTraits,
): Promise<CriticFreeLearner> {
  return CriticFreeLearner.create(model, reinforceAlgorithm(resolveReinforceConfig(options)), policy);
}

function reinforceAlgorithm(config: ReinforceConfig): CriticFreeAlgorithm {
  const { entropyCoef, klCoef, numGenerations } = config;
  return {
    name: "REINFORCE++",
    config,
    startsAlike: numGenerations > 1,
    comparesWithinGroups: config.baseline === "group",
    objective: (nodes) => reinforceLoss(nodes, config),
    entropy: entropyCoef === 0 ? "value" : "gradient",
    divergenceSetting: klCoef > 0 ? "klCoef" : undefined,
    usesEntropies: false,
    credit: (episodes) => credit(episodes, config),
    regularises: entropyCoef > 0,
    inputs: (turns, { tokens, entropyFactor }) =>
      reinforceInputs(
        {
          oldLogProbs: concatenate(turns.map(({ oldLogProbs }) => oldLogProbs)),
          advantages: concatenate(turns.map(({ advantages }) => advantages)),
        },
        { total: tokens, entropyFactor: entropyCoef === 0 ? undefined : entropyFactor },
      ),
    metrics: ({ sums }) => ({
      entropy: sums.entropy!,
      "policy/approxkl_avg": sums.approxKl!,
      "policy/clipfrac_avg": sums.clipFraction!,
      "val/ratio": sums.ratio!,
    }),
  };
}

function credit(episodes: readonly PlayedEpisode[], config: ReinforceConfig): Credit {
  const kls = episodes.map(({ turns }) => turns.map((turn) => divergences(turn, config)));
  const samples = episodes.map(({ turns, group }, i) => {
    let end = 0;
    return {
      group,
      kls: concatenate(kls[i]),
      turns: turns.map(({ turn, oldLogProbs }) => ({ end: (end += oldLogProbs.length), reward: turn.reward })),
    };
  });
  const found = reinforceAdvantages(samples, config);
  return {
    advantages: samples.map(({ turns }, i) =>
      turns.map(({ end }, t): Numbers => found[i].subarray(turns[t - 1]?.end ?? 0, end)),
    ),
    metrics: config.klCoef === 0 ? {} : { "objective/kl": mean(kls.flatMap((turns) => turns.map(sum))) },
  };
}

/** Of each decision, from the reference; 0 where that was not computed. */
function divergences({ oldLogProbs, refLogProbs }: PlayedTurn, { klPenalty }: ReinforceConfig): Numbers {
  return refLogProbs === undefined
    ? new Float64Array(oldLogProbs.length)
    : perTokenKl(klPenalty, oldLogProbs, refLogProbs);
}
