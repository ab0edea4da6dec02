export type { GgufMetadata } from "./header.js";
export { openGguf, type GgufModel } from "./open.js";
export type { TokenizerFiles } from "./tokenizer.js";
