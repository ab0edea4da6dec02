export type { DownloadProgress } from "./fetch-into-cache.js";
export type { ModelLocation } from "./model-location.js";
export { resolveModel, resolveOptionNames, type ResolveOptions } from "./resolve-model.js";
export { resolveHubConfig, type HubOptions, type HubConfig } from "./hub-config.js";
