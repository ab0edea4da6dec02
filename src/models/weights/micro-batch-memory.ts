import { system } from "#platform";
import type { DecoderConfig } from "../../engine/nn/index.js";

/** Values in float32 that a forward and backward pass may keep for its gradients: about 2 GB. */
const MAX_ACTIVATIONS = 2 ** 29;
/** The same for quantized weights, which are chosen to save memory: about 1 GB. */
const MAX_ACTIVATIONS_QUANTIZED = 2 ** 28;
/** Share of the machine's memory that these values may take. */
const MAX_MEMORY_SHARE = 1 / 8;
/** What a token is reckoned to keep, for each layer and width. */
const ACTIVATIONS_PER_TOKEN = 30;
/** What a pair of attention slots is reckoned to keep, for each layer and head. */
const ACTIVATIONS_PER_PAIR = 4;
const MIN_TOKENS = 256;
/**
 * A small model's longer passes leave the processor's cache: of the embedded model, an update takes
 * an eighth longer.
 */
const MAX_TOKENS = 2048;

/**
 * Returns how many tokens to put in one forward and backward pass: as many as fit in about 2 GB, in
 * 1 GB with quantized weights and in an eighth of the machine's memory, but no more than make a
 * pass faster.
 */
export function defaultMicroBatchTokens(
  network: DecoderConfig,
  { isQuantized = false, memory = system.memoryBytes() }: { isQuantized?: boolean; memory?: number } = {},
): number {
  const budget = isQuantized ? MAX_ACTIVATIONS_QUANTIZED : MAX_ACTIVATIONS;
  return tokensWithin(network, Math.min(budget, (memory * MAX_MEMORY_SHARE) / 4));
}

function tokensWithin({ hiddenSize, layers }: DecoderConfig, values: number): number {
  const affordable = Math.floor(values / (ACTIVATIONS_PER_TOKEN * hiddenSize * layers.length));
  return Math.min(MAX_TOKENS, Math.max(MIN_TOKENS, affordable));
}

/**
 * From so many tokens a pass for each of the model's width on, an adapter costs less when it is
 * merged into the weights once per pass than separately: measured at widths of 128 and 576.
 */
const MIN_TOKENS_TO_MERGE = 5;

/** How an adapter is best applied in passes over many tokens, on any machine; see ScopeOptions. */
export function chooseAdapterMode(config: DecoderConfig): "merged" | "unmerged" {
  return tokensWithin(config, MAX_ACTIVATIONS) >= MIN_TOKENS_TO_MERGE * config.hiddenSize ? "merged" : "unmerged";
}

/** The memory that a pass takes, in tokens without attention: long rows fill it by their pairs. */
export function tokensThatFit(
  { tokens, pairs }: { readonly tokens: number; readonly pairs: number },
  { hiddenSize, heads }: Pick<DecoderConfig, "hiddenSize" | "heads">,
): number {
  return tokens + (ACTIVATIONS_PER_PAIR * heads * pairs) / (ACTIVATIONS_PER_TOKEN * hiddenSize);
}
