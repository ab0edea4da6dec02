import type { CausalLM } from "../../models/causal-lm.js";
import type { PolicyTraits } from "../learner.js";
import type {
  Credit,
  CriticFreeAlgorithm,
  PlayedEpisode,
  PlayedTurn,
  TrainedTurn,
} from "../policy/critic-free-algorithm.js";
import { CriticFreeLearner } from "../policy/critic-free-learner.js";
import { sum } from "../shared/arrays.js";
import { creditReturns } from "../shared/credit.js";
import { mean, type Numbers } from "../shared/statistics.js";
import { clipReward, normaliseScores, scoresWithoutOwn } from "./advantages.js";
import { resolveRlooConfig, type RlooConfig, type RlooOptions } from "./config.js";
import { rlooInputs, rlooLoss, rlooMetrics, type RlooSequence } from "./loss.js";

/**
 * REINFORCE leave-one-out (Ahmadian et al. 2024) on turns of whole episodes: a turn's credit is compared with those of the other
 * episodes of its group at the same step. Throws INVALID_ARGUMENT for settings that cannot be, INVALID_STATE for a model that cannot
 * be trained so.
 */
export async function createRlooLearner(
  model: CausalLM,
  options: RlooOptions,
  policy: PolicyTraits,
): Promise<CriticFreeLearner> {
  return CriticFreeLearner.create(model, rlooAlgorithm(resolveRlooConfig(options)), policy);
}

function rlooAlgorithm(config: RlooConfig): CriticFreeAlgorithm {
  return {
    name: "RLOO",
    config,
    startsAlike: true,
    comparesWithinGroups: !config.normalizeAdvantages,
    objective: (nodes) => rlooLoss(nodes, config),
    entropy: config.entropyCoef === 0 ? "value" : "gradient",
    divergenceSetting: config.beta > 0 ? "beta" : undefined,
    usesEntropies: false,
    regularises: config.entropyCoef > 0,
    credit: (episodes) => credit(episodes, config),
    inputs: (turns, step) => rlooInputs(turns.map(sequenceOf), step, config),
    metrics: ({ perToken }, turns) =>
      rlooMetrics({ ratio: perToken.ratio!, entropy: perToken.entropy }, turns.map(sequenceOf), config),
  };
}

function sequenceOf({ oldLogProbs, advantages }: TrainedTurn): RlooSequence {
  return { length: oldLogProbs.length, oldLogProb: sum(oldLogProbs), advantage: advantages[0] };
}

function credit(episodes: readonly PlayedEpisode[], config: RlooConfig): Credit {
  const kls = episodes.map(({ turns }) => turns.map(divergence));
  const credits = episodes.map(({ turns }, i) =>
    creditReturns(
      turns.map(({ turn }, t) => clipReward(turn.reward, config) - config.beta * kls[i][t]),
      config,
    ),
  );
  const scores = normaliseScores(
    scoresWithoutOwn(
      credits,
      episodes.map(({ group }) => group),
    ),
    config,
  );
  return {
    advantages: episodes.map(({ turns }, i) =>
      turns.map(({ oldLogProbs }, t): Numbers => new Float64Array(oldLogProbs.length).fill(scores[i][t])),
    ),
    metrics: config.beta === 0 ? {} : { kl: mean(kls.flat()) },
  };
}

/** log pi - log pi_ref of a turn's decisions together; 0 where the reference was not computed. */
function divergence({ oldLogProbs, refLogProbs }: PlayedTurn): number {
  return refLogProbs === undefined ? 0 : sum(oldLogProbs) - sum(refLogProbs);
}
