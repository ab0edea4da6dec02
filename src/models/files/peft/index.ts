export {
  isAdapterFolder,
  readAdapter,
  readAdapterConfig,
  isOfModule,
  writeAdapter,
  type Adapter,
  type AdapterTensor,
} from "./adapter.js";
export type { AdapterConfig } from "./adapter-config.js";
export { LORA_DEFAULTS, type LoraConfig } from "./lora-config.js";
