import { system } from "#platform";
import type { DecoderConfig } from "../../engine/nn/index.js";
import { countLogitRows } from "../../engine/graph/index.js";
import { HEAD_WEIGHT, linearModules, parameterShapes } from "../architectures/index.js";
import { isOfModule } from "../files/peft/index.js";
import { countKeptLayers, defaultMicroBatchTokens, usesGradientCheckpointing } from "./micro-batch-memory.js";

/** Bits per weight of the layers' matrices. */
export type WeightBits = 32 | 8 | 4;

/** Intended use of a model. */
export interface MemoryUsage {
  /** Default 32. */
  readonly bits?: WeightBits;
  /**
   * Inference only, or adapter training by reinforcement learning, which includes inference.
   * Default "inference".
   */
  readonly use?: "inference" | "train";
  /** Rank of the trained adapter. Default 16. */
  readonly r?: number;
  /** Layers with an adapter; negative ones count from the end. Default all. */
  readonly layersToTransform?: readonly number[];
  /** Modules that are trained as a whole. Default none. */
  readonly modulesToSave?: readonly string[];
  /** Tokens per micro-batch. Default: see defaultMicroBatchTokens. */
  readonly microBatchTokens?: number;
  /**
   * Whether a layer's values are computed again for gradients. Default: see
   * usesGradientCheckpointing.
   */
  readonly gradientCheckpointing?: boolean;
  /** Whose memory: the process's, or with "webgpu" the GPU's. Default "cpu". */
  readonly device?: "cpu" | "webgpu";
  /** Tokens in the cache of keys and values, of all sequences together. Default 1,024. */
  readonly cachedTokens?: number;
  /**
   * Whether a reference policy has separate values of the trained parameters. Default false.
   */
  readonly copiesReference?: boolean;
  /** Whether training sessions keep packed weights; see usesPackedWeights. Default false. */
  readonly packed?: boolean;
}

/**
 * Bytes without a model: in the process Node.js, ONNX Runtime and a tokenizer; on a GPU the
 * parameters of kernels and what crosses the bus.
 */
const PROCESS_BYTES = { cpu: 150e6, webgpu: 10e6 } as const;

/**
 * Bytes per weight that sampling reads: its code and, at 4 bits, its share of the block's scale.
 */
const PACKED_BYTES = { 32: 4, 8: 1, 4: 0.5 + 4 / 32 } as const;

/** Measured bytes per 8-bit weight that joining and packing matrices for decoding takes as well. */
const JOINING_BYTES = 0.4;

/**
 * Bytes per weight that a training session reads in addition to, or instead of, the packed weights,
 * for its products forward.
 */
const FORWARD_BYTES = { 32: 4, 8: 1, 4: 0 } as const;

/**
 * Bytes per weight of a trained layer that gradients read: float32 weights are shared with the
 * forward pass.
 */
const BACKWARD_BYTES = { 32: 0, 8: 1, 4: 0.5 + 0.5 / 32 } as const;

/**
 * Measured float32 values kept per token, trained layer and hidden dimension for the backward pass.
 */
const ACTIVATIONS_PER_TOKEN = { cpu: 21, webgpu: 17 } as const;

/** Copies of the logits that are in memory at once; another one where tiles of them are joined. */
const LOGIT_COPIES = { cpu: 3, webgpu: 1 } as const;

/** Value, gradient and two moments of an adapter's parameter. */
const BYTES_PER_TRAINABLE_VALUE = 16;

/** The base model's value of a parameter that is trained as a whole, for the reference policy. */
const BYTES_PER_BASE_VALUE = 4;

/**
 * A copy of a trained parameter, and the two in JavaScript with which it is moved to the policy's.
 */
const BYTES_PER_COPIED_VALUE = 12;

const DEFAULT_CACHED_TOKENS = 1024;

/**
 * Estimates peak memory in bytes by adding up what is allocated and mapped: the process, the
 * weights that sampling reads, the output matrix, keys and values, and for training the weights
 * that a session reads forward and backward, the adapter with its optimizer, the values kept for
 * gradients and the logits. A GPU has each weight once. See docs/models.md.
 */
export function estimateModelMemory(network: DecoderConfig, usage: MemoryUsage = {}): number {
  const { bits = 32, use = "inference", cachedTokens = DEFAULT_CACHED_TOKENS, device = "cpu" } = usage;
  const headWeights = network.vocabSize * network.hiddenSize;
  const layerWeights = sumWeights(linearModules(network));
  // The GPU has float32 values of all weights but the layers' matrices.
  const headBytes =
    device === "webgpu" ? 4 * (countParameters(network) - layerWeights) : (bits === 32 ? 4 : 1) * headWeights;
  const keyValueBytes = 4 * 2 * network.layers.length * network.keyValueHeads * network.headDim * cachedTokens;
  const resident = PROCESS_BYTES[device] + PACKED_BYTES[bits] * layerWeights + headBytes + keyValueBytes;
  if (use === "train") return resident + estimateTrainingMemory(network, usage);
  // Converting and packing need the output matrix twice for a moment; training needs more later.
  const joiningBytes = bits === 8 ? JOINING_BYTES * layerWeights : 0;
  return resident + (device === "cpu" ? headBytes + joiningBytes : 0);
}

/** Estimates what training adds. */
function estimateTrainingMemory(
  network: DecoderConfig,
  {
    bits = 32,
    r = 16,
    layersToTransform = [],
    modulesToSave = [],
    packed = false,
    copiesReference = false,
    device = "cpu",
    ...usage
  }: MemoryUsage,
): number {
  const { layers, hiddenSize, vocabSize } = network;
  const modules = linearModules(network);
  const trainedLayers = countTrainedLayers(layers.length, layersToTransform);
  const trainedShare = trainedLayers / layers.length;
  const passOptions = { isQuantized: bits !== 32, trainedLayers };
  const { gradientCheckpointing = usesGradientCheckpointing(network, passOptions) } = usage;
  const { microBatchTokens = defaultMicroBatchTokens(network, { ...passOptions, gradientCheckpointing }) } = usage;
  const keptLayers = countKeptLayers(trainedLayers, gradientCheckpointing);
  const saved = parameterNames(network).filter((name) => modulesToSave.some((module) => isOfModule(name, module)));
  const savedValues = saved.reduce((sum, name) => sum + countValues(network, name), 0);
  // A trained output matrix keeps all logits for its gradient, and has float32 values.
  const isHeadTrained = saved.includes(HEAD_WEIGHT);
  const isHeadCoded = bits !== 32 && device === "cpu" && !isHeadTrained;
  const maxLogitRows = isHeadTrained ? microBatchTokens : countLogitRows(vocabSize, { hasScales: isHeadCoded });
  const logitRows = Math.min(maxLogitRows, microBatchTokens);
  const logitCopies = LOGIT_COPIES[device] + (isHeadCoded ? 1 : 0);
  const layerWeights = sumWeights(modules);
  const headWeights = vocabSize * hiddenSize;
  const adaptedShare = (layersToTransform.length || layers.length) / layers.length;
  const adapterValues = modules.reduce((sum, { inFeatures, outFeatures }) => sum + r * (inFeatures + outFeatures), 0);
  const bytesPerValue = BYTES_PER_TRAINABLE_VALUE + (copiesReference ? BYTES_PER_COPIED_VALUE : 0);
  const isShared = device === "webgpu" && bits === 32;
  const weightBytes =
    (isShared ? 0 : FORWARD_BYTES[bits]) * layerWeights +
    BACKWARD_BYTES[bits] * trainedShare * layerWeights +
    (device === "webgpu" ? 0 : isHeadCoded ? 1 : 4) * headWeights +
    (packed ? 4 * 2 * (trainedShare * layerWeights + headWeights) : 0);
  const keptValues = ACTIVATIONS_PER_TOKEN[device] * microBatchTokens * keptLayers * hiddenSize;
  return (
    weightBytes +
    bytesPerValue * adaptedShare * adapterValues +
    (bytesPerValue + BYTES_PER_BASE_VALUE) * savedValues +
    4 * (keptValues + logitCopies * logitRows * vocabSize)
  );
}

/** Returns the names of a network's parameters, with the output matrix where it is tied. */
function parameterNames(network: DecoderConfig): string[] {
  return [...new Set([...parameterShapes(network).keys(), HEAD_WEIGHT])];
}

function countValues(network: DecoderConfig, name: string): number {
  const shape = parameterShapes(network).get(name) ?? [network.vocabSize, network.hiddenSize];
  return shape.reduce((product, size) => product * size, 1);
}

/** Returns the number of layers from the first one with an adapter on. */
function countTrainedLayers(count: number, layersToTransform: readonly number[]): number {
  const indices = layersToTransform.map((layer) => (layer < 0 ? count + layer : layer));
  return indices.length === 0 ? count : count - Math.min(count, Math.max(0, Math.min(...indices)));
}

function sumWeights(modules: readonly { readonly inFeatures: number; readonly outFeatures: number }[]): number {
  return modules.reduce((sum, { inFeatures, outFeatures }) => sum + inFeatures * outFeatures, 0);
}

/**
 * Whether training sessions keep packed weights: 10% faster for two more copies. True for float32
 * weights where the model then takes at most half of the machine's memory; quantized ones gain
 * little.
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
