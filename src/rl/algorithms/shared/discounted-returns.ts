import { mean, STD_EPSILON, variance, type NumberArray } from "./statistics.js";

/** What a turn is credited with: the rewards from it on, or those of the whole episode. */
export type ReturnKind = "return-to-go" | "episode-return";

/**
 * Return-to-go of each step: G_t = r_t + gamma * G_(t+1). After a step with ends[t] another episode begins.
 */
export function discountedReturns(
  rewards: NumberArray,
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
export function episodeReturn(rewards: NumberArray, gamma = 1): number {
  return discountedReturns(rewards, { gamma })[0] ?? 0;
}

/** Return of each turn of an episode; with "episode-return" each has that of the first. */
export function returnsByKind(
  rewards: NumberArray,
  { returns, gamma }: { returns: ReturnKind; gamma: number },
): Float64Array {
  const returnsToGo = discountedReturns(rewards, { gamma });
  return returns === "return-to-go" ? returnsToGo : returnsToGo.fill(returnsToGo[0]);
}

/**
 * Returns of each step normalized over the episodes of a group that have a step of that index: (G - mean) / (std + 1e-4), std
 * with n - 1. A step that only one episode has gets 0: there is nothing to compare it with.
 */
export function normalizeByStep(episodes: readonly NumberArray[]): Float64Array[] {
  return mapEachStep(episodes, (column) => {
    const center = mean(column);
    const scale = Math.sqrt(variance(column)) + STD_EPSILON;
    return column.map((value) => (value - center) / scale);
  });
}

/** Returns of each step less their mean over the episodes of a group that have a step of that index. */
export function centerByStep(episodes: readonly NumberArray[]): Float64Array[] {
  return mapEachStep(episodes, (column) => {
    const center = mean(column);
    return column.map((value) => value - center);
  });
}

/** A function of what the episodes have at a step, for every step. */
export function mapEachStep(
  episodes: readonly NumberArray[],
  transform: (column: readonly number[]) => readonly number[],
): Float64Array[] {
  const results = episodes.map(({ length }) => new Float64Array(length));
  const maxLength = Math.max(0, ...episodes.map(({ length }) => length));
  for (let t = 0; t < maxLength; t++) {
    const episodeIndices = episodes.flatMap((returns, i) => (t < returns.length ? [i] : []));
    transform(episodeIndices.map((i) => episodes[i][t])).forEach(
      (value, position) => (results[episodeIndices[position]][t] = value),
    );
  }
  return results;
}
