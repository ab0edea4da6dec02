import { mean, type NumberArray } from "./statistics.js";

/** Return of a turn: rewards from the turn on, or of the whole episode. */
export type ReturnKind = "return-to-go" | "episode-return";

/**
 * Computes the return-to-go of each step: G_t = r_t + gamma * G_(t+1). An episode ends after each
 * step with ends[t].
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

/**
 * Computes the return of each turn of an episode; with "episode-return" all turns have that of the
 * first.
 */
export function returnsByKind(
  rewards: NumberArray,
  { returns, gamma }: { returns: ReturnKind; gamma: number },
): Float64Array {
  const returnsToGo = discountedReturns(rewards, { gamma });
  return returns === "return-to-go" ? returnsToGo : returnsToGo.fill(returnsToGo[0]);
}

/** Subtracts from the returns of each step their mean over the episodes of a group that have it. */
export function centerByStep(episodes: readonly NumberArray[]): Float64Array[] {
  return mapEachStep(episodes, (column) => {
    const center = mean(column);
    return column.map((value) => value - center);
  });
}

/** Applies a function to the values of the episodes at each step. */
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
