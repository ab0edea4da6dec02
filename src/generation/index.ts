export {
  AutoModelForCausalLM,
  AutoModelForCausalLMWithValueHead,
  getPeftModel,
  PeftModel,
  type PretrainedOptions,
  type TrainablePretrainedOptions,
  openTrainable,
} from "./auto-model.js";
export { type JsonSchema, isSchema } from "./constraints/json-schema/keywords.js";
export { checkIsModel, LanguageModel, type LanguageModelOptions } from "./language-model.js";
export type {
  PolicyBackend,
  PolicyOptimizer,
  PolicyOptimizerOptions,
  PolicyScorer,
  PolicyTrainer,
  TokenSampler,
  TrainingNeeds,
} from "./policy-backend.js";
export {
  type GenerationOptions,
  type ContextOverflow,
  TEMPERATURE_LIMITS,
  UNFILTERED_SAMPLING,
  generationSettings,
  policySamplingSettings,
  readConfigNumber,
  resolveOptions,
} from "./generation-options.js";
export {
  type PromptInput,
  DROP_OLDEST_ADVICE,
  type EncodedPrompt,
  encodePrompt,
  fitToContext,
} from "./prompt/encode-prompt.js";
export type {
  BatchOptions,
  ChoiceResult,
  ChooseOptions,
  ContinuationScore,
  Completion,
  ScoreOptions,
} from "./completion.js";
export { RunningSequence } from "./sampling/running-sequence.js";
export type {
  FinishReason,
  SampleOutput,
  SampleRequest,
  ScoredTokens,
  TokenLogProb,
} from "./sampling/sample-request.js";
export { Completer } from "./completer.js";
export { ChoiceConstraint } from "./constraints/choice-constraint.js";
export type { CompiledConstraint, ConstraintCursor, TokenConstraint } from "./constraints/compiled-constraint.js";
export {
  type OutputConstraint,
  compileToByteAutomaton,
  constraintKey,
  describeViolation,
  readPattern,
  toToolError,
} from "./constraints/output-constraint.js";
export type { PatternConstraint } from "./constraints/pattern-constraint.js";
export { Sampler } from "./sampling/sampler.js";
export { CompletionCache, MAX_SMALL_VOCABULARY } from "./sampling/completion-cache.js";
