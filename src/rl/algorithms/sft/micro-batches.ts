import type { PackingOptions, TokenBatch } from "../../../models/graphs/index.js";
import { countLossTokens, type TokenExample } from "../../data/sft-example.js";
import { packItems } from "../shared/sequence-batches.js";

/**
 * Packs examples into batches of one forward and backward pass, in which the loss tokens are
 * selected.
 */
export function packExamples(examples: readonly TokenExample[], options: PackingOptions): readonly TokenBatch[] {
  const trained = examples.filter((example) => countLossTokens(example) > 0);
  return packItems(
    trained.map((example) => [example]),
    options,
  ).map(({ tokens }) => tokens);
}
