export { writeFileAtomic } from "./atomic.js";
export * from "./gguf/index.js";
export * from "./hub/index.js";
export { readJson, readJsonIfThere, writeJson, type JsonObject, type JsonValue } from "./json.js";
export * from "./peft/index.js";
export * from "./safetensors/index.js";
export { type RawWeight, type WeightEntry, type WeightFile } from "./weights.js";
