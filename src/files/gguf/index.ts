export { ggufArchitectureNames } from "./architectures.js";
export { dequantise, readableGgmlTypes } from "./dequantise.js";
export type { GgufMetadata } from "./header.js";
export { openGguf, type GgufModel } from "./open.js";
export type { TokenizerFiles } from "./tokenizer.js";
export { ggmlTypeByName, type GgmlType } from "./types.js";
