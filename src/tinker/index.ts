export {
  checkTinkerService,
  openSavedTinkerModel,
  openTinkerModel,
  type TinkerModelOptions,
} from "./open-tinker-model.js";
export { downloadAdapter } from "./download-adapter.js";
export { isServiceModelFolder, SERVICE_LORA_ALPHA } from "./service-model.js";
export type { ServiceTraits } from "./probe-service.js";
export { serviceSettings } from "./service-settings.js";
export { ServiceConnection } from "./client/service-connection.js";
export { unpackSequences } from "./token-sequences.js";
