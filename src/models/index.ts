export { formatAdapterReadme } from "./adapter-readme.js";
export {
  type OpenOptions,
  type ResolveOptions,
  checkAdapterBase,
  getBaseModel,
  openAdapter,
  openOptionNames,
  openPretrained,
  resolveOptionNames,
} from "./auto.js";
export { CausalLM, chooseModelDevice } from "./causal-lm.js";
export { EMBEDDED_MODEL } from "./embedded-model.js";
export {
  baseModelSettings,
  checkTuning,
  microBatchTokens,
  modelSettings,
  parseLoraOptions,
  parseGradientCheckpointing,
  parseQuantizeBits,
  tuningSettings,
} from "./model-settings.js";
export { type SaveOptions, loadTrainedValues, saveModel, saveOptionNames } from "./save-model.js";
