import { LlamaGymError } from "../errors.js";
import type { CausalLM } from "../models/causal-lm.js";
import { affordableTokens } from "../models/pass-memory.js";
import { createGrpoLearner } from "./grpo/learner.js";
import type { Learner, PolicyTraits } from "./learner.js";
import { PpoLearner } from "./ppo/learner.js";
import { createReinforceLearner } from "./reinforce/learner.js";
import { createRlooLearner } from "./rloo/learner.js";
import { checkOneAlgorithm, type AlgorithmOptions } from "./table.js";

export interface LearnerOptions extends AlgorithmOptions, Omit<PolicyTraits, "maxTokens"> {
  /** Tokens of one forward and backward pass. By default what a pass of some hundred megabytes takes. */
  readonly maxTokens?: number;
}

/**
 * The algorithm that an agent asks for, at work on its model. Throws INVALID_ARGUMENT for options of several algorithms and for a
 * temperature of 0, and what the algorithm throws.
 */
export async function createLearner(model: CausalLM, options: LearnerOptions): Promise<Learner> {
  const { temperature, isTruncated, random, maxTokens = affordableTokens(model.config) } = options;
  checkOneAlgorithm(options);
  if (!(temperature > 0)) {
    throw new LlamaGymError(
      "INVALID_ARGUMENT",
      "Training needs replies drawn at a temperature above 0: greedy ones try nothing out.",
    );
  }
  const policy: PolicyTraits = { temperature, isTruncated, random, maxTokens };
  if (options.grpo !== undefined) return createGrpoLearner(model, options.grpo, policy);
  if (options.rloo !== undefined) return createRlooLearner(model, options.rloo, policy);
  if (options.reinforce !== undefined) return createReinforceLearner(model, options.reinforce, policy);
  return PpoLearner.create(model, options.ppo ?? {}, policy);
}
