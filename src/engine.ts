/**
 * The engine below the agents (llamagym/engine): symbolic graphs with gradients, a model's training and scoring graphs, and
 * optimisers, for losses of one's own.
 */
export * from "./graph/index.js";
export {
  getPeftModel,
  trainWeights,
  withAdapterValues,
  type ParameterValues,
  type PeftOptions,
} from "./models/adapters.js";
export type { SequenceGroup } from "./models/batch.js";
export { CausalLM, type Adapter, type ModelOptions } from "./models/causal-lm.js";
export { mergeAdapter } from "./models/merging.js";
export type { EntropyUse, PolicyNodes } from "./models/policy.js";
export { loadAdapter, saveModel, type SaveOptions } from "./models/saving.js";
export {
  ScoringGraph,
  TrainingGraph,
  type GraphOptions,
  type Objective,
  type Scores,
  type SelectedToken,
  type TokenBatch,
} from "./models/training-graph.js";
export * from "./optim/index.js";
export { Runtime, type RuntimeOptions } from "./runtime/runtime.js";
export { float32, int32, tensor, zeros, type Tensor } from "./tensor/tensor.js";
