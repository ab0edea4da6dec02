export {
  AutoModelForCausalLM,
  AutoModelForCausalLMWithValueHead,
  getPeftModel,
  PeftModel,
  type PretrainedOptions,
  type TrainablePretrainedOptions,
} from "./auto.js";
export { ChoiceConstraint } from "./constraints/choices.js";
export type { JsonSchema } from "./constraints/json-schema/keywords.js";
export type { Pattern } from "./constraints/pattern.js";
export { PatternConstraint, type PatternConstraintOptions } from "./constraints/pattern-constraint.js";
export { LanguageModel, type LanguageModelOptions } from "./language-model.js";
export { type GenerationOptions, type OverflowPolicy } from "./options.js";
export type { PromptInput } from "./prompt.js";
export type { BatchOptions, Choice, ChooseOptions, ContinuationScore, ModelReply, ScoreOptions } from "./results.js";
export type { FinishReason, Reply, ReplyRequest, TokenConstraint } from "./request.js";
export { Sampler, type SamplerOptions } from "./sampler.js";
