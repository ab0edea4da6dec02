export type { GgufMetadata } from "./gguf-header.js";
export { openGguf, readGgufTokenizer, type GgufModel } from "./open-gguf.js";
export type { GgufTokenizerFiles } from "./tokenizer/gguf-tokenizer.js";
