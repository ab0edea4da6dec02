import type { ModelSize } from "./start.js";
import type { TokenizerSize } from "./tokenizer.js";

export const MODEL_SIZE: Omit<ModelSize, "vocabSize"> = {
  hiddenSize: 128,
  intermediateSize: 352,
  layers: 4,
  heads: 4,
  contextLength: 2048,
};

export const TOKENIZER_SIZE: TokenizerSize = { vocabSize: 1280, merges: 200 };

export const TRAINING = {
  seed: 1,
  /** Conversations that the tokenizer is made from. */
  tokenizerDraws: 20_000,
  /**
   * In the first stage it learns to read; in the second, a tenth as long, its actions are evened
   * out.
   */
  steps: 6000,
  stages: [
    { share: 1, learningRate: 2e-3 },
    { share: 0.1, learningRate: 5e-4 },
  ],
  /** Conversations of an update. */
  batchSize: 128,
  lrSchedulerType: "cosine",
  warmupSteps: 50,
  weightDecay: 0.01,
  beta2: 0.98,
  maxGradNorm: 1,
  logEvery: 50,
  saveSteps: 250,
} as const;
