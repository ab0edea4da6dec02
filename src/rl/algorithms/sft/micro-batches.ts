import {
  packSharedPrefixes,
  type PackingOptions,
  type SelectedToken,
  type TokenBatch,
} from "../../../models/graphs/index.js";
import type { TokenExample } from "../../data/sft-example.js";

/** Packs examples into batches of one forward and backward pass, in which the loss tokens are selected. */
export function packExamples(examples: readonly TokenExample[], options: PackingOptions): readonly TokenBatch[] {
  const trained = examples.filter((example) => lastLossToken(example) > 0);
  const sequences = trained.map((example) => [example.tokens.slice(0, lastLossToken(example))]);
  return packSharedPrefixes(sequences, options).map(({ indices, groups, positions }) => {
    const selected = indices.flatMap((example, i) => {
      const { group, row, prefix } = positions[i];
      const { tokens, lossMask } = trained[example];
      return tokens.flatMap((target, t): SelectedToken[] =>
        t > 0 && lossMask[t] !== 0 ? [{ group, row, index: t - prefix, target }] : [],
      );
    });
    return { groups, selected };
  });
}

/** Returns the index of the last loss token, behind which nothing needs to be computed; 0 without any. */
function lastLossToken({ lossMask }: TokenExample): number {
  let last = lossMask.length - 1;
  while (last > 0 && lossMask[last] === 0) last--;
  return Math.max(0, last);
}
