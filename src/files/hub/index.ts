export type { DownloadProgress } from "./download.js";
export type { ModelLocation } from "./location.js";
export { resolveModel, type ResolveOptions } from "./resolve.js";
export { hubSettings, type HubOptions, type HubSettings } from "./settings.js";
