/**
 * Largest magnitude of a reward. Returns of a million such rewards, their squares and sums of these
 * stay finite in float32, in which losses are computed, and a reward of 0.1 is still not rounded
 * away next to it.
 */
export const MAX_REWARD = 1e6;

/** What a reward must be, for error messages. */
export const REWARD_RULE = `a finite number from -${MAX_REWARD} to ${MAX_REWARD}; scale larger rewards down`;

/** Whether a value is a number that training accepts as a reward. */
export function isReward(value: unknown): value is number {
  return typeof value === "number" && Math.abs(value) <= MAX_REWARD;
}

/** Largest magnitude of an episode's return: the largest reward in each of a million turns. */
export const MAX_RETURN = MAX_REWARD * 1e6;
