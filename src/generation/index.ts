export {
  AutoModelForCausalLM,
  AutoModelForCausalLMWithValueHead,
  getPeftModel,
  PeftModel,
  type PretrainedOptions,
  type TrainablePretrainedOptions,
} from "./auto-model.js";
export type { JsonSchema } from "./constraints/json-schema/keywords.js";
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
export type { FinishReason } from "./sampling/sample-request.js";
