import { concatenate, sum } from "../shared/arrays.js";
import { overSteps } from "../shared/returns.js";
import { combineRewards, groupsOf } from "../shared/rewards.js";
import { defined, nanMean, nanStd, STD_EPSILON, type Numbers } from "../shared/statistics.js";
import type { RlooConfig } from "./config.js";

export interface RlooAdvantages {
  /** [samples]; 0 for a sample that could not be scored, or that has no other to be compared with. */
  readonly advantages: Float64Array;
  /** Reward of each sample, clipped and less its penalty; NaN for one that could not be scored. */
  readonly rewards: Float64Array;
  /** Standard deviation (n - 1) of each group's rewards. */
  readonly groupStds: Float64Array;
}

export interface LeaveOneOutOptions extends Pick<
  RlooConfig,
  "numGenerations" | "beta" | "normalizeAdvantages" | "rewardClipMin" | "rewardClipMax"
> {
  /** Weight of each reward function; 1 by default. */
  readonly rewardWeights?: Numbers;
}

/**
 * Advantages of groups of numGenerations consecutive samples: a sample's reward less the mean reward of the others of its group
 * (Ahmadian et al. 2024). `perFunction` is [samples][functions], NaN where a function could not give one; `kls` is each sample's
 * divergence from the reference, summed over its tokens, of which beta times is taken from the reward.
 */
export function rlooAdvantages(
  perFunction: readonly Numbers[],
  kls: Numbers,
  { rewardWeights, ...config }: LeaveOneOutOptions,
): RlooAdvantages {
  const { beta, numGenerations } = config;
  const rewards = combineRewards(perFunction, rewardWeights).map((reward, i) => {
    const clipped = clipReward(reward, config);
    return beta === 0 ? clipped : clipped - beta * kls[i];
  });
  const groupStds = Float64Array.from(groupsOf(rewards, numGenerations), nanStd);
  const samples = Array.from(rewards, (reward) => [reward]);
  const groups = Array.from(rewards, (_, i) => Math.floor(i / numGenerations));
  const scores = normaliseScores(scoresWithoutOwn(samples, groups), config);
  return { advantages: Float64Array.from(scores, ([score]) => score), rewards, groupStds };
}

/** A reward within the bounds that the settings give; NaN stays. */
export function clipReward(
  reward: number,
  { rewardClipMin = -Infinity, rewardClipMax = Infinity }: Pick<RlooConfig, "rewardClipMin" | "rewardClipMax">,
): number {
  return Math.min(Math.max(reward, rewardClipMin), rewardClipMax);
}

/**
 * Each credit less the mean of the others that episodes of its group have at the same step; NaN where there are no others.
 * `credits` are each episode's, [turns].
 */
export function scoresWithoutOwn(credits: readonly Numbers[], groups: readonly number[]): Float64Array[] {
  const scores: Float64Array[] = [];
  for (const group of new Set(groups)) {
    const members = groups.flatMap((own, i) => (own === group ? [i] : []));
    const found = overSteps(
      members.map((i) => credits[i]),
      leaveOneOut,
    );
    members.forEach((i, place) => (scores[i] = found[place]));
  }
  return scores;
}

/** Each reward less the mean of the others; NaN where there are no others. */
function leaveOneOut(group: readonly number[]): number[] {
  const scored = defined(group);
  const total = sum(scored);
  return group.map((reward) => reward - (total - reward) / (scored.length - 1));
}

/** Scores as advantages: over the batch at mean 0 and deviation 1 where the settings say so, and 0 where there is none. */
export function normaliseScores(
  scores: readonly Float64Array[],
  { normalizeAdvantages }: Pick<RlooConfig, "normalizeAdvantages">,
): Float64Array[] {
  const all = concatenate(scores);
  const centre = normalizeAdvantages ? nanMean(all) : 0;
  const scale = normalizeAdvantages ? nanStd(all) + STD_EPSILON : 1;
  return scores.map((row) => row.map((score) => (Number.isNaN(score) ? 0 : (score - centre) / scale)));
}
