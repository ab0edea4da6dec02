export type { ModelDefaults, ModelEntry } from "./entry.js";
export { countParameters, estimateMemory, type MemoryUse } from "../memory.js";
export {
  findModel,
  modelFamily,
  registeredModels,
  registerModel,
  type FoundModel,
  type RegisteredModel,
} from "./registry.js";
