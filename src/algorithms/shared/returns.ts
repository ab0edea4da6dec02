import { mean, variance, type Numbers } from "./statistics.js";

/** Added to standard deviations, as in TRL's GRPOTrainer. */
const STD_EPSILON = 1e-4;

/**
 * Return-to-go of each step: G_t = r_t + gamma * G_(t+1). After a step with ends[t] another episode begins.
 */
export function discountedReturns(
  rewards: Numbers,
  { gamma, ends = [] }: { gamma: number; ends?: ArrayLike<boolean | number> },
): Float64Array {
  const returns = new Float64Array(rewards.length);
  for (let t = rewards.length - 1, running = 0; t >= 0; t--) {
    running = rewards[t] + (ends[t] ? 0 : gamma * running);
    returns[t] = running;
  }
  return returns;
}

/** The return of a whole episode from its first step: sum of gamma^t * r_t. */
export function episodeReturn(rewards: Numbers, gamma = 1): number {
  return discountedReturns(rewards, { gamma })[0] ?? 0;
}

/**
 * Returns of each step normalised over the episodes of a group that have a step of that index: (G - mean) / (std + 1e-4), std
 * with n - 1. A step that only one episode has gets 0: there is nothing to compare it with.
 */
export function normaliseByStep(episodes: readonly Numbers[]): Float64Array[] {
  const normalised = episodes.map(({ length }) => new Float64Array(length));
  const longest = Math.max(0, ...episodes.map(({ length }) => length));
  for (let t = 0; t < longest; t++) {
    const present = episodes.flatMap((returns, i) => (t < returns.length ? [i] : []));
    const column = present.map((i) => episodes[i][t]);
    const centre = mean(column);
    const scale = Math.sqrt(variance(column)) + STD_EPSILON;
    for (const i of present) normalised[i][t] = (episodes[i][t] - centre) / scale;
  }
  return normalised;
}
