import { totalmem } from "node:os";
import type { DecoderConfig } from "../../engine/nn/decoder-config.js";
import { linearModules, parameterShapes } from "../architectures/index.js";
import { defaultMicroBatchTokens } from "./micro-batch-memory.js";

/** Bits of the layers' matrices. */
export type WeightBits = 32 | 8 | 4;

/** What a model is to do. */
export interface MemoryUsage {
  /** Default 32. */
  readonly bits?: WeightBits;
  /** Generate, or train an adapter by reinforcement learning, which generates too. Default "play". */
  readonly use?: "play" | "train";
  /** Rank of the adapter that is trained. Default 16. */
  readonly r?: number;
  /** Tokens of one forward and backward pass. By default what takes some 2 GB, 256 at least and 2,048 at most. */
  readonly microBatchTokens?: number;
  /** Whether sessions that learn keep packed weights, see packsForTraining. Default false: the least that a network needs. */
  readonly packed?: boolean;
}

/** Bytes of a process without a model: Node.js, the runtime, a tokenizer. */
const PROCESS_BYTES = 150e6;

/** Bytes of a matrix's weight: its code, and each block's scale and zero point. */
const BYTES_PER_WEIGHT = { 32: 4, 8: 1 + 5 / 32, 4: 0.5 + 4.5 / 32 } as const;

/**
 * How often the bytes of the layers' matrices are in memory: in their file, which all sessions map, and (but in 8 bits) packed for
 * decoding. While only playing, what was packed is not read from the file again. All other weights are there once, and the output
 * matrix packed besides.
 */
const RESIDENT_COPIES = {
  play: { 32: 1.1, 8: 1, 4: 1.1 },
  train: { 32: 2, 8: 1, 4: 2 },
} as const;

/** The same of what a learning session packs, beside two copies of the output matrix: for products forward and backward. */
const PACKED_COPIES = { 32: 2, 8: 0, 4: 1 } as const;

/** Values that a token was seen to keep for its gradients, for each layer and width, in float32. */
const ACTIVATIONS_PER_TOKEN = 23;

/** Rows of logits that are there at once, and how often. */
const LOGIT_ROWS = 3 * 256;

/** An adapter's value, its gradient and two moments. */
const BYTES_PER_TRAINABLE_VALUE = 16;

/**
 * About how many bytes of memory a network takes at its peak: 150 MB + copies of its weights, and for training + 16 bytes for each
 * value of the adapter + 4 x 23 x tokens x layers x width + 4 x 768 x vocabulary. The weights are 4 bytes each, those of the layers'
 * matrices in 8 bits 1.16, in 4 bits 0.64. docs/models.md has what was measured.
 */
export function estimateModelMemory(
  network: DecoderConfig,
  { bits = 32, use = "play", r = 16, microBatchTokens, packed = false }: MemoryUsage = {},
): number {
  const modules = linearModules(network);
  const layerWeights = modules.reduce((sum, { inFeatures, outFeatures }) => sum + inFeatures * outFeatures, 0);
  const layerBytes = BYTES_PER_WEIGHT[bits] * layerWeights;
  const headBytes = 4 * network.vocabSize * network.hiddenSize;
  const residentBytes =
    PROCESS_BYTES + RESIDENT_COPIES[use][bits] * layerBytes + 4 * (countParameters(network) - layerWeights) + headBytes;
  if (use === "play") return residentBytes;
  const adapterValues = modules.reduce((sum, { inFeatures, outFeatures }) => sum + r * (inFeatures + outFeatures), 0);
  const width = network.hiddenSize * network.layers.length;
  const tokens = microBatchTokens ?? defaultMicroBatchTokens(network);
  const trainingBytes =
    BYTES_PER_TRAINABLE_VALUE * adapterValues +
    4 * (ACTIVATIONS_PER_TOKEN * tokens * width + LOGIT_ROWS * network.vocabSize);
  return residentBytes + trainingBytes + (packed ? PACKED_COPIES[bits] * layerBytes + 2 * headBytes : 0);
}

/**
 * Whether a session that learns keeps its weights packed as well: a tenth faster, for two more copies of them. Where with these a
 * model takes less than half of the machine's memory; not in 8 bits, where packing gains nothing.
 */
export function usesPackedWeights(
  network: DecoderConfig,
  bits: WeightBits,
  memory: number = getMachineMemory(),
): boolean {
  return bits !== 8 && estimateModelMemory(network, { use: "train", bits, packed: true }) <= memory / 2;
}

/** Bytes of memory that this machine has, or that a container allows. */
function getMachineMemory(): number {
  const limit = process.constrainedMemory();
  return limit > 0 ? Math.min(totalmem(), limit) : totalmem();
}

/** All weights of a network; an output matrix that is the embedding counts once. */
export function countParameters(network: DecoderConfig): number {
  let count = 0;
  for (const shape of parameterShapes(network).values()) count += shape.reduce((product, size) => product * size, 1);
  return count;
}
