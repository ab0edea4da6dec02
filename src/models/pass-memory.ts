import type { DecoderConfig } from "../nn/config.js";

/** Values in float32 that a forward and backward pass may keep for its gradients: some 2 GB. */
const KEPT_VALUES = 2 ** 29;
/** What a token is reckoned to keep, for each layer and width. */
const KEPT_PER_TOKEN = 30;
/** What a pair of attention slots is reckoned to keep, for each layer and head. */
const KEPT_PER_PAIR = 4;
const LEAST_TOKENS = 256;
/** A small model's longer passes leave the processor's cache: of the embedded model, an update takes an eighth longer. */
const MOST_TOKENS = 2048;

/** Tokens of a forward and backward pass that takes at most some 2 GB, and no longer for its length. */
export function affordableTokens({ hiddenSize, layers }: DecoderConfig): number {
  const affordable = Math.floor(KEPT_VALUES / (KEPT_PER_TOKEN * hiddenSize * layers.length));
  return Math.min(MOST_TOKENS, Math.max(LEAST_TOKENS, affordable));
}

/**
 * From so many tokens a pass for each of the model's width on, an adapter costs less when it is merged into the weights once a pass
 * than beside them: measured at widths of 128 and 576.
 */
const MERGING_PAYS = 5;

/** How an adapter is best applied in passes over many tokens; see ScopeOptions. */
export function bestAdapterForm(config: DecoderConfig): "merged" | "separate" {
  return affordableTokens(config) >= MERGING_PAYS * config.hiddenSize ? "merged" : "separate";
}

/** The memory that a pass takes, in tokens without attention: long rows fill it by their pairs. */
export function memoryInTokens(
  { tokens, pairs }: { readonly tokens: number; readonly pairs: number },
  { hiddenSize, heads }: Pick<DecoderConfig, "hiddenSize" | "heads">,
): number {
  return tokens + (KEPT_PER_PAIR * heads * pairs) / (KEPT_PER_TOKEN * hiddenSize);
}
