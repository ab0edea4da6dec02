import { LlamaGymError } from "../../core/errors.js";
import type { CausalLM } from "../../models/causal-lm.js";
import { defaultMicroBatchTokens } from "../../models/weights/micro-batch-memory.js";
import { createGrpoLearner } from "./grpo/grpo.js";
import type { Learner, LearnerContext } from "./learner.js";
import { PpoLearner } from "./ppo/ppo-learner.js";
import { createReinforceLearner } from "./reinforce/reinforce.js";
import { createRlooLearner } from "./rloo/rloo.js";
import { checkOneAlgorithm, type AlgorithmOptions } from "./algorithms.js";

export interface LearnerOptions extends AlgorithmOptions, Omit<LearnerContext, "maxTokens"> {
  /** Tokens of one forward and backward pass. By default what a pass of some hundred megabytes takes. */
  readonly maxTokens?: number;
}

/**
 * The algorithm that an agent asks for, at work on its model. Throws INVALID_ARGUMENT for options of several algorithms and for a
 * temperature of 0, and what the algorithm throws.
 */
export async function createLearner(model: CausalLM, options: LearnerOptions): Promise<Learner> {
  const { temperature, isTruncatedSampling, random, maxTokens = defaultMicroBatchTokens(model.config) } = options;
  checkOneAlgorithm(options);
  if (!(temperature > 0)) {
    throw new LlamaGymError(
      "INVALID_ARGUMENT",
      "Training needs replies drawn at a temperature above 0: greedy ones try nothing out.",
    );
  }
  const context: LearnerContext = { temperature, isTruncatedSampling, random, maxTokens };
  if (options.grpo !== undefined) return createGrpoLearner(model, options.grpo, context);
  if (options.rloo !== undefined) return createRlooLearner(model, options.rloo, context);
  if (options.reinforce !== undefined) return createReinforceLearner(model, options.reinforce, context);
  return PpoLearner.create(model, options.ppo ?? {}, context);
}
