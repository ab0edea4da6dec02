export { AutoModelForCausalLM, getPeftModel, PeftModel, type PretrainedOptions } from "./auto.js";
export { ChoiceConstraint } from "./choices.js";
export {
  LanguageModel,
  type BatchOptions,
  type Choice,
  type ChooseOptions,
  type ContinuationScore,
  type LanguageModelOptions,
  type ModelReply,
  type ScoreOptions,
} from "./language-model.js";
export { type GenerationOptions, type OverflowPolicy } from "./options.js";
export type { PromptInput } from "./prompt.js";
export type { FinishReason, Reply, ReplyRequest, TokenConstraint } from "./request.js";
export { Sampler, type SamplerOptions } from "./sampler.js";
