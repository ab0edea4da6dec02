export { replaceFile, writeFileAtomic } from "./atomic.js";
export { bfloat16ToFloat32, float16ToFloat32, float32ToBfloat16, float32ToFloat16 } from "./float16.js";
export * from "./gguf/index.js";
export { isJsonObject, readJson, readJsonValue, writeJson, type JsonObject, type JsonValue } from "./json.js";
export * from "./peft/index.js";
export * from "./safetensors/index.js";
export { elementCount, type RawWeight, type WeightEntry, type WeightFile } from "./weights.js";
