/**
 * What lies below agents and trainers (llamagym/engine), for losses, algorithms and samplers of
 * other kinds: symbolic graphs with gradients, a model's training and scoring graphs, optimizers,
 * the sampler, and the types of an algorithm's parts.
 */
export {
  abs,
  add,
  addDims,
  addMatmul,
  type AllowedTokenSets,
  and,
  apply,
  argMax,
  type BinaryFunction,
  broadcastShapes,
  canBeEmpty,
  cast,
  clip,
  compile,
  type CompiledGraph,
  concat,
  constant,
  defineOperation,
  dequantize,
  type Dim,
  dim,
  dimValue,
  div,
  dropout,
  equal,
  erf,
  evaluateDim,
  exp,
  expand,
  formatShape,
  gatherRows,
  gatherRowsWithInverse,
  gelu,
  geluTanh,
  gradient,
  input,
  int8GradientMatmul,
  type Int8Weight,
  int8WeightMatmul,
  intScalar,
  layerNorm,
  less,
  lessEqual,
  type LmHeadInputs,
  log,
  logSoftmax,
  MASKED_LOGIT,
  matmul,
  maximum,
  minimum,
  mul,
  mulDims,
  type NamedTensorType,
  neg,
  type Node,
  not,
  type Operation,
  or,
  pad,
  pick,
  place,
  positiveDim,
  quantizedMatmul,
  type QuantizedWeight,
  reduceMax,
  reduceMean,
  reduceSum,
  reshape,
  rmsNorm,
  rotary,
  type RowBits,
  sameDim,
  sameShape,
  scalar,
  scatterAddRows,
  type Shape,
  sigmoid,
  silu,
  slice,
  softmax,
  split,
  sqrt,
  square,
  stopGradient,
  sub,
  subDims,
  SymbolicDim,
  tanh,
  type TensorType,
  tokenLogProbs,
  transpose,
  type UnaryFunction,
  weight,
  type WeightLocation,
  where,
  withGradientOf,
} from "./engine/graph/index.js";
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
export {
  type AdamWOptions,
  Optimizer,
  type OptimizerOptions,
  type OptimizerState,
  type OptimizerStepOptions,
  type OptimizerStepResult,
  type ParameterGroup,
  type ScheduleOptions,
  type SgdOptions,
  type TrainableParameters,
  warmupScheduleFactor,
} from "./engine/optim/index.js";
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
