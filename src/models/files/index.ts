export * from "./gguf/index.js";
export * from "./hub/index.js";
export * from "./peft/index.js";
export * from "./safetensors/index.js";
export { type WeightEntry, type WeightFile } from "./weight-file.js";
