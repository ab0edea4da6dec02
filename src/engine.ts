/**
 * The engine below the agents (llamagym/engine): symbolic graphs with gradients, a model's training and scoring graphs, and
 * optimizers, for custom losses.
 */
export * from "./engine/graph/index.js";
export {
  getPeftModel,
  makeTrainable,
  withAdapterValues,
  type ParameterValues,
  type PeftOptions,
} from "./models/adapters/get-peft-model.js";
export type { PrefixGroup } from "./models/graphs/sequence-batch.js";
export { CausalLM, type Adapter, type ModelOptions } from "./models/causal-lm.js";
export { mergeAdapter } from "./models/adapters/merge-adapter.js";
export type { EntropyMode, PolicyNodes } from "./models/graphs/policy-nodes.js";
export { loadAdapter, saveModel, type SaveOptions } from "./models/save-model.js";
export {
  ScoringGraph,
  TrainingGraph,
  type GraphOptions,
  type LossResult,
  type TokenScores,
} from "./models/graphs/training-graph.js";
export type { SelectedToken, TokenBatch } from "./models/graphs/token-batch.js";
export * from "./engine/optim/index.js";
export { Runtime, type RuntimeOptions } from "./engine/runtime/runtime.js";
export { float32, int32, tensor, zeros, type Tensor } from "./engine/tensor/tensor.js";
