export {
  AutoModelForCausalLM,
  AutoModelForCausalLMWithValueHead,
  getPeftModel,
  PeftModel,
  type PretrainedOptions,
  type TrainablePretrainedOptions,
} from "./auto-model.js";
export { ChoiceConstraint } from "./constraints/choice-constraint.js";
export type { CompiledConstraint, ConstraintCursor, TokenConstraint } from "./constraints/compiled-constraint.js";
export type { JsonSchema } from "./constraints/json-schema/keywords.js";
export type { TextPattern } from "./constraints/output-constraint.js";
export { PatternConstraint, type PatternConstraintOptions } from "./constraints/pattern-constraint.js";
export { LanguageModel, type LanguageModelOptions } from "./language-model.js";
export { type GenerationOptions, type ContextOverflow } from "./generation-options.js";
export type { PromptInput } from "./prompt/encode-prompt.js";
export type {
  BatchOptions,
  ChoiceResult,
  ChooseOptions,
  ContinuationScore,
  Completion,
  ScoreOptions,
} from "./completion.js";
export type { FinishReason, SampleOutput, SampleRequest } from "./sampling/sample-request.js";
export { Sampler, type SamplerOptions } from "./sampling/sampler.js";
