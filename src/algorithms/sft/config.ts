import type { ScheduleOptions } from "../../optim/index.js";

/** How a model is fine-tuned on examples. */
export interface SftConfig {
  /** Peak learning rate of AdamW. */
  readonly learningRate: number;
  readonly schedule: ScheduleOptions["kind"];
  /** Updates over which the rate rises from 0. */
  readonly warmupSteps: number;
  /** Examples in an update. */
  readonly batchSize: number;
  /** An update's examples go through the model in parts of at most so many tokens; the gradients are summed. */
  readonly maxTokensPerPass: number;
  readonly epochs: number;
  /** Ends the training after so many updates, whatever `epochs` says; 0 leaves it to `epochs`. */
  readonly maxSteps: number;
  readonly weightDecay: number;
  readonly beta2: number;
  /** Gradients are scaled down to this global norm where theirs is larger. */
  readonly maxGradNorm: number;
  /** Longer examples lose their end; 0 stands for the model's context. */
  readonly maxLength: number;
  /** Computes beginnings that examples of a batch share, such as a system prompt, once. */
  readonly sharePrefixes: boolean;
  readonly seed: number;
}

/** Learning rate, schedule and norm: LlamaGymEDU's and TRL's SFT; batches and epochs as TRL's, on one machine. */
export const SFT_DEFAULTS: SftConfig = {
  learningRate: 1e-4,
  schedule: "linear",
  warmupSteps: 0,
  batchSize: 8,
  maxTokensPerPass: 4096,
  epochs: 3,
  maxSteps: 0,
  weightDecay: 0,
  beta2: 0.999,
  maxGradNorm: 1,
  maxLength: 0,
  sharePrefixes: true,
  seed: 0,
};
