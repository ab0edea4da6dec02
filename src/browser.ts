export { copyFromStorage, copyToStorage } from "./core/platform/browser/storage.js";
export { listFiles, readFile, writeFile } from "./core/platform/browser/page-files.js";
