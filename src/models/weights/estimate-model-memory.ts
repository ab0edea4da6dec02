import { system } from "#platform";
import type { DecoderConfig } from "../../engine/nn/index.js";
import { linearModules, parameterShapes } from "../architectures/index.js";
import { defaultMicroBatchTokens } from "./micro-batch-memory.js";

/** Bits per weight of the layers' matrices. */
export type WeightBits = 32 | 8 | 4;

/** Intended use of a model. */
export interface MemoryUsage {
  /** Default 32. */
  readonly bits?: WeightBits;
  /** Inference only, or adapter training by reinforcement learning, which includes inference. Default "inference". */
  readonly use?: "inference" | "train";
  /** Rank of the trained adapter. Default 16. */
  readonly r?: number;
  /** Tokens per micro-batch. Default: what fits about 2 GB, from 256 to 2,048. */
  readonly microBatchTokens?: number;
  /** Whether training sessions keep packed weights; see usesPackedWeights. Default false. */
  readonly packed?: boolean;
}

/** Bytes of the process without a model: Node.js, ONNX Runtime, a tokenizer. */
const PROCESS_BYTES = 150e6;

/** Bytes per weight: its code and, at 4 bits, its share of the block's scale and zero point. */
const BYTES_PER_WEIGHT = { 32: 4, 8: 1, 4: 0.5 + 4.5 / 32 } as const;

/**
 * Number of resident copies of the layer matrices: the mapped file, the copy packed for decoding and, for training at 8
 * bits, one transposed for gradients. Inference never touches the mapped pages of packed weights again. All other
 * weights are resident once, and the output matrix once more when packed, for quantized layers in 8 bits.
 */
const RESIDENT_COPIES = { inference: { 32: 1.1, 8: 1.1, 4: 1.1 }, train: { 32: 2, 8: 3, 4: 2 } } as const;

/**
 * Further copies packed by a training session for products forward and backward, in addition to two of the output
 * matrix.
 */
const PACKED_COPIES = { 32: 2, 8: 0, 4: 1 } as const;

/** Measured float32 values kept per token, layer and hidden dimension for the backward pass. */
const ACTIVATIONS_PER_TOKEN = 23;

/** Rows of logits in memory at once, times their copies. */
const LOGIT_ROWS = 3 * 256;

/** Value, gradient and two moments of an adapter's parameter. */
const BYTES_PER_TRAINABLE_VALUE = 16;

/**
 * Estimates peak memory in bytes: 150 MB + copies of the weights, and for training + 16 bytes per adapter parameter + 4
 * * 23 * tokens * layers * width + 4 * 768 * vocabulary. Weights take 4 bytes, those of the layers' matrices 1 at 8
 * bits and 0.64 at 4 bits, and those of the packed output matrix then 1. See docs/models.md for measurements.
 */
export function estimateModelMemory(
  network: DecoderConfig,
  { bits = 32, use = "inference", r = 16, microBatchTokens, packed = false }: MemoryUsage = {},
): number {
  const modules = linearModules(network);
  const layerWeights = modules.reduce((sum, { inFeatures, outFeatures }) => sum + inFeatures * outFeatures, 0);
  const layerBytes = BYTES_PER_WEIGHT[bits] * layerWeights;
  const headBytes = 4 * network.vocabSize * network.hiddenSize;
  const packedHeadBytes = bits === 32 ? headBytes : headBytes / 4;
  const otherBytes = 4 * (countParameters(network) - layerWeights);
  const residentBytes = PROCESS_BYTES + RESIDENT_COPIES[use][bits] * layerBytes + otherBytes + packedHeadBytes;
  if (use === "inference") return residentBytes;
  const adapterValues = modules.reduce((sum, { inFeatures, outFeatures }) => sum + r * (inFeatures + outFeatures), 0);
  const width = network.hiddenSize * network.layers.length;
  const tokens = microBatchTokens ?? defaultMicroBatchTokens(network);
  const trainingBytes =
    BYTES_PER_TRAINABLE_VALUE * adapterValues +
    4 * (ACTIVATIONS_PER_TOKEN * tokens * width + LOGIT_ROWS * network.vocabSize);
  return residentBytes + trainingBytes + (packed ? PACKED_COPIES[bits] * layerBytes + 2 * headBytes : 0);
}

/**
 * Whether training sessions keep packed weights: 10% faster for two more copies. True where the model then takes at
 * most half of the machine's memory; false at 8 bits, where packing gains little.
 */
export function usesPackedWeights(
  network: DecoderConfig,
  bits: WeightBits,
  memory: number = system.memoryBytes(),
): boolean {
  return bits === 32 && estimateModelMemory(network, { use: "train", bits, packed: true }) <= memory / 2;
}

/** Counts the weights of a network; a tied output matrix counts once. */
export function countParameters(network: DecoderConfig): number {
  let count = 0;
  for (const shape of parameterShapes(network).values()) count += shape.reduce((product, size) => product * size, 1);
  return count;
}
