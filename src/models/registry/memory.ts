import { linearModules, parameterShapes } from "../architectures/index.js";
import type { DecoderConfig } from "../../nn/config.js";
import { affordableTokens } from "../pass-memory.js";

/** What a model is to do. */
export interface MemoryUse {
  /** Bits of the layers' matrices. Default 32. */
  readonly bits?: 32 | 8 | 4;
  /** Generate, or train an adapter by reinforcement learning, which generates too. Default "play". */
  readonly use?: "play" | "train";
  /** Rank of the adapter that is trained. Default 16. */
  readonly r?: number;
  /** Tokens of one forward and backward pass. By default what takes some 2 GB, and 256 at least. */
  readonly maxTokens?: number;
}

/** Bytes of a process without a model: Node.js, the runtime, a tokenizer. */
const PROCESS = 150e6;

/** Bytes of a matrix's weight: its code, and each block's scale and zero point. */
const BYTES_PER_WEIGHT = { 32: 4, 8: 1 + 5 / 32, 4: 0.5 + 4.5 / 32 } as const;

/**
 * How often the bytes of the layers' matrices are in memory, and those of the other weights. Playing in float32, they are mapped and
 * packed in part; in few bits, they are held, packed and copied while the session is made. Training adds the sessions that score
 * and learn, each with the output matrix packed for its products.
 */
const COPIES = {
  play: { 32: [1.35, 1.35], 8: [2.9, 2.9], 4: [2.9, 2.9] },
  train: { 32: [4.1, 7.2], 8: [5.25, 7.2], 4: [5.25, 7.2] },
} as const;

/** Values that a token was seen to keep for its gradients, for each layer and width, in float32. */
const KEPT_PER_TOKEN = 23;

/** An adapter's value, its gradient and two moments. */
const BYTES_PER_TRAINED = 16;

/**
 * About how many bytes of memory a network takes at its peak: 150 MB + copies of its weights, and for training + 16 bytes for each value of
 * the adapter + 4 x 23 x tokens x layers x width. The weights are 4 bytes each, those of the layers' matrices in 8 bits 1.16, in
 * 4 bits 0.64. Fitted to SmolLM2-135M (docs/models.md).
 */
export function estimateMemory(
  network: DecoderConfig,
  { bits = 32, use = "play", r = 16, maxTokens }: MemoryUse = {},
): number {
  const modules = linearModules(network);
  const layers = modules.reduce((sum, { inFeatures, outFeatures }) => sum + inFeatures * outFeatures, 0);
  const [ofLayers, ofOthers] = COPIES[use][bits];
  const weights = ofLayers * BYTES_PER_WEIGHT[bits] * layers + ofOthers * 4 * (countParameters(network) - layers);
  const held = PROCESS + weights;
  if (use === "play") return held;
  const adapter = modules.reduce((sum, { inFeatures, outFeatures }) => sum + r * (inFeatures + outFeatures), 0);
  const width = network.hiddenSize * network.layers.length;
  const tokens = maxTokens ?? affordableTokens(network);
  return held + BYTES_PER_TRAINED * adapter + 4 * KEPT_PER_TOKEN * tokens * width;
}

/** All weights of a network; an output matrix that is the embedding counts once. */
export function countParameters(network: DecoderConfig): number {
  let count = 0;
  for (const shape of parameterShapes(network).values()) count += shape.reduce((product, size) => product * size, 1);
  return count;
}
