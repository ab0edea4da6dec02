/**
 * What lies below agents and trainers (llamagym/engine), for losses, algorithms and samplers of other kinds: symbolic graphs with gradients, a
 * model's training and scoring graphs, optimizers, the sampler, and the types of an algorithm's parts.
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
export { ChoiceConstraint } from "./generation/constraints/choice-constraint.js";
export type {
  CompiledConstraint,
  ConstraintCursor,
  TokenConstraint,
} from "./generation/constraints/compiled-constraint.js";
export type { TextPattern } from "./generation/constraints/output-constraint.js";
export { PatternConstraint, type PatternConstraintOptions } from "./generation/constraints/pattern-constraint.js";
export type { SampleOutput, SampleRequest, ScoredTokens } from "./generation/sampling/sample-request.js";
export { Sampler, type SamplerOptions } from "./generation/sampling/sampler.js";
export type {
  AdvantageResult,
  LossStatistics,
  MinibatchTotals,
  RolloutRequest,
  ScoredTrajectory,
  ScoredTurn,
  Stepping,
  TurnSample,
  UpdateConfig,
} from "./rl/algorithms/algorithm-definition.js";
export type { ConfiguredAlgorithm } from "./rl/algorithms/define-algorithm.js";
export type { GroupSpec, LearnerContext, RolloutSpec, UpdateOptions } from "./rl/algorithms/learner.js";
export type { TokenInput } from "./rl/algorithms/shared/loss-nodes.js";
export type { SpecialTokenRole } from "./models/text/special-tokens.js";
export type { TokenizerFiles } from "./models/text/tokenizer-files.js";
export { readTokenizerFolder, writeTokenizerFolder } from "./models/text/tokenizer-folder.js";
