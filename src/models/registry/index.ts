export type { ModelDefaults, ModelEntry } from "./model-entry.js";
export {
  countParameters,
  estimateModelMemory,
  type MemoryUsage,
  type WeightBits,
} from "../weights/estimate-model-memory.js";
export {
  findModel,
  modelFamily,
  registeredModels,
  registerModel,
  type RegistryMatch,
  type RegisteredModel,
} from "./model-registry.js";
