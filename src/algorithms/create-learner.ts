import { LlamaGymError } from "../errors.js";
import type { CausalLM } from "../models/causal-lm.js";
import type { DecoderConfig } from "../nn/config.js";
import type { Learner, PolicyTraits } from "./learner.js";
import type { PpoOptions } from "./ppo/config.js";
import { PpoLearner } from "./ppo/learner.js";

export interface LearnerOptions extends Omit<PolicyTraits, "maxTokens"> {
  /** Tokens of one forward and backward pass. By default what a pass of some hundred megabytes takes. */
  readonly maxTokens?: number;
  readonly ppo?: PpoOptions;
}

/** Values that a pass keeps for its gradients; with some 30 for each layer and width, some 2 GB. */
const KEPT_VALUES = 2 ** 29;

/** The algorithm that an agent asks for, at work on its model. Throws what the algorithm's `create` throws. */
export async function createLearner(
  model: CausalLM,
  { ppo = {}, maxTokens, ...policy }: LearnerOptions,
): Promise<Learner> {
  if (!(policy.temperature > 0)) {
    throw new LlamaGymError(
      "INVALID_ARGUMENT",
      "Training needs replies drawn at a temperature above 0: greedy ones try nothing out.",
    );
  }
  return PpoLearner.create(model, ppo, { ...policy, maxTokens: maxTokens ?? affordableTokens(model.config) });
}

/** Tokens of a forward and backward pass that takes some 2 GB. */
export function affordableTokens({ hiddenSize, layers }: DecoderConfig): number {
  return Math.max(256, Math.floor(KEPT_VALUES / (30 * hiddenSize * layers.length)));
}
