import type { ScoredTrajectory } from "../../src/rl/algorithms/algorithm-definition.js";
import { combineRewards } from "../../src/rl/algorithms/shared/combine-rewards.js";
import type { Turn } from "../../src/rl/rollout/trajectory.js";

/** A turn of which only what a test speaks of matters. */
export function makeTurn(overrides: Partial<Turn>): Turn {
  return {
    prompt: [1],
    tokens: [2],
    logProbs: (overrides.tokens ?? [2]).map(() => -1),
    allowedTokens: undefined,
    text: "",
    finishReason: "stop",
    isValid: true,
    attempts: 1,
    penalty: 0,
    reward: 0,
    ...overrides,
  };
}

/**
 * Single completions of one decision with rewards of several functions, in groups of consecutive
 * ones.
 */
export function scoreCompletions(
  rewardsPerFunction: readonly (readonly number[])[],
  { groupSize, rewardWeights, kls = [] }: GroupOptions,
): ScoredTrajectory[] {
  const rewards = combineRewards(rewardsPerFunction, rewardWeights);
  return rewardsPerFunction.map((row, i) => ({
    group: Math.floor(i / groupSize),
    end: "terminated",
    bootstrapValue: 0,
    rewardsPerFunction: row,
    turns: [
      {
        turn: makeTurn({ reward: rewards[i] }),
        oldLogProbs: Float64Array.of(kls[i] ?? 0),
        refLogProbs: Float64Array.of(0),
        oldValues: undefined,
        entropies: undefined,
      },
    ],
  }));
}

interface GroupOptions {
  readonly groupSize: number;
  readonly rewardWeights?: readonly number[];
  /** KL to the reference of each completion. */
  readonly kls?: readonly number[];
}
