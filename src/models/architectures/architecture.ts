import type { DecoderConfig } from "../../engine/nn/decoder-config.js";
import type { HuggingFaceConfig } from "./hugging-face-config.js";

/**
 * An architecture: config.json's fields, with the defaults of Transformers' configuration class of the same model_type,
 * to a network. Throws FILE_CORRUPT for a field that is missing or cannot be, MODEL_UNSUPPORTED for one that asks for
 * something that the network does not compute.
 */
export type Architecture = (config: HuggingFaceConfig) => DecoderConfig;
