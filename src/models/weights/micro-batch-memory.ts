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
/** Values of a layer for each that it keeps with checkpoints. */
const ACTIVATIONS_BETWEEN_CHECKPOINTS = 20;
/** What a pair of attention slots is reckoned to keep, for each layer and head. */
const ACTIVATIONS_PER_PAIR = 4;
const MIN_TOKENS = 256;
/**
 * A small model's longer passes leave the processor's cache: of the embedded model, an update takes
 * an eighth longer.
 */
const MAX_TOKENS = 2048;

/** What determines the values that a pass keeps. */
export interface ActivationOptions {
  /** Whether weights have 8 or 4 bits; default false. */
  readonly isQuantized?: boolean;
  /** Layers from the lowest trained one on; default all. */
  readonly trainedLayers?: number;
  /** Memory of the machine in bytes; default this machine's. */
  readonly memory?: number;
}

/**
 * Returns how many tokens to put in one forward and backward pass: as many as fit in about 2 GB, in
 * 1 GB with quantized weights and in an eighth of the machine's memory, but no more than make a
 * pass faster.
 */
export function defaultMicroBatchTokens(
  network: DecoderConfig,
  options: ActivationOptions & { readonly gradientCheckpointing?: boolean } = {},
): number {
  const values = activationBudget(options);
  const { layers, hiddenSize } = network;
  const { trainedLayers = layers.length } = options;
  const { gradientCheckpointing = usesGradientCheckpointing(network, options) } = options;
  // Fewer trained layers and checkpoints let large models have passes of a useful length; others
  // have it anyway.
  const isLarge = tokensWithin(values, layers.length * hiddenSize) < MIN_TOKENS;
  const keptLayers = !isLarge ? layers.length : countKeptLayers(trainedLayers, gradientCheckpointing);
  return Math.min(MAX_TOKENS, Math.max(MIN_TOKENS, tokensWithin(values, keptLayers * hiddenSize)));
}

/**
 * Whether the values between a layer's input and its output are computed again for gradients by
 * default: where those of the shortest useful pass do not fit into what a pass may take.
 */
export function usesGradientCheckpointing(network: DecoderConfig, options: ActivationOptions = {}): boolean {
  const { layers, hiddenSize } = network;
  const { trainedLayers = layers.length } = options;
  return tokensWithin(activationBudget(options), trainedLayers * hiddenSize) < MIN_TOKENS;
}

/**
 * Returns how many layers' values are in memory at once: with checkpoints about two, those computed
 * again and their gradients, and a value per token and width for the input of each layer.
 */
export function countKeptLayers(trainedLayers: number, gradientCheckpointing: boolean): number {
  return gradientCheckpointing
    ? Math.min(trainedLayers, 2 + trainedLayers / ACTIVATIONS_BETWEEN_CHECKPOINTS)
    : trainedLayers;
}

function activationBudget({ isQuantized = false, memory = system.memoryBytes() }: ActivationOptions): number {
  const budget = isQuantized ? MAX_ACTIVATIONS_QUANTIZED : MAX_ACTIVATIONS;
  return Math.min(budget, (memory * MAX_MEMORY_SHARE) / 4);
}

function tokensWithin(values: number, widthOfLayers: number): number {
  return Math.floor(values / (ACTIVATIONS_PER_TOKEN * widthOfLayers));
}

/**
 * From so many tokens a pass for each of the model's width on, an adapter costs less when it is
 * merged into the weights once per pass than separately: measured at widths of 128 and 576.
 */
const MIN_TOKENS_TO_MERGE = 5;

/** How an adapter is best applied in passes over many tokens, on any machine; see ScopeOptions. */
export function chooseAdapterMode({ layers, hiddenSize }: DecoderConfig): "merged" | "unmerged" {
  const affordable = Math.max(MIN_TOKENS, tokensWithin(MAX_ACTIVATIONS, layers.length * hiddenSize));
  return Math.min(MAX_TOKENS, affordable) >= MIN_TOKENS_TO_MERGE * hiddenSize ? "merged" : "unmerged";
}

/** The memory that a pass takes, in tokens without attention: long rows fill it by their pairs. */
export function tokensThatFit(
  { tokens, pairs }: { readonly tokens: number; readonly pairs: number },
  { hiddenSize, heads }: Pick<DecoderConfig, "hiddenSize" | "heads">,
): number {
  return tokens + (ACTIVATIONS_PER_PAIR * heads * pairs) / (ACTIVATIONS_PER_TOKEN * hiddenSize);
}
