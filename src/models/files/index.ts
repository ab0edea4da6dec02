export { getCacheFolder } from "./cache-folder.js";
export {
  addAllChecksums,
  addChecksums,
  CHECKSUMS_NAME,
  verifyAllChecksums,
  verifyChecksum,
  verifyChecksums,
  writeChecksums,
  hashFile,
} from "./checksums.js";
export { replaceFolder, writeFileAtomic } from "./write-file-atomic.js";
export { FolderLock, withFolderLock } from "./folder-lock.js";
export * from "./gguf/index.js";
export * from "./hub/index.js";
export type { JsonObject, JsonValue } from "../../core/json.js";
export { checkSavable, readJson, readJsonIfExists, writeJson } from "./json-file.js";
export * from "./peft/index.js";
export { removeFolder } from "./remove-folder.js";
export * from "./safetensors/index.js";
export { type WeightEntry, type WeightFile } from "./weight-file.js";
export { getSystemErrorCode, ignoreMissingFile, toReadError, toWriteError } from "./file-errors.js";
export { getTemporaryPath, removeAbandonedFiles } from "./temporary-path.js";
