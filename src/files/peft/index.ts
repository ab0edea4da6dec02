export {
  ADAPTER_CONFIG_NAME,
  ADAPTER_WEIGHTS_NAME,
  isAdapterFolder,
  readAdapter,
  writeAdapter,
  type Adapter,
  type AdapterTensor,
} from "./adapter.js";
export type { AdapterConfig } from "./config.js";
