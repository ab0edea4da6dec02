import { invalidArgument } from "../../core/errors.js";
import type { LanguageModel } from "../../generation/index.js";
import { selectAlgorithm, type AlgorithmOptions } from "./algorithms.js";
import type { Learner, LearnerContext } from "./learner.js";

export interface LearnerOptions extends AlgorithmOptions, Omit<LearnerContext, "microBatchTokens" | "frozenStates"> {
  /** Token budget of a micro-batch. By default what fits into a few hundred megabytes. */
  readonly microBatchTokens?: number;
}

/**
 * Creates the learner of an agent's algorithm on its model.
 * @throws INVALID_ARGUMENT for options of several algorithms or out of range, and for a temperature
 * of 0.
 * @throws INVALID_STATE for a model that the algorithm cannot train.
 */
export async function createLearner(model: LanguageModel, options: LearnerOptions): Promise<Learner> {
  const { temperature, isTruncatedSampling, maxCompletionLength, distillation, random } = options;
  const { microBatchTokens = model.policy.microBatchTokens } = options;
  if (!(temperature > 0))
    throw invalidArgument(
      `Training needs completions sampled at a temperature above 0, got ${temperature}: greedy completions do not explore.`,
    );
  const algorithm = selectAlgorithm(options);
  return algorithm.create(model, {
    temperature,
    isTruncatedSampling,
    microBatchTokens,
    maxCompletionLength,
    random,
    distillation,
    frozenStates: model.frozenStates,
  });
}
