import type { DecoderConfig } from "../../engine/nn/decoder-config.js";
import type { HuggingFaceConfig } from "./hugging-face-config.js";

/**
 * Parses config.json into a network, with the defaults of Transformers' configuration class for the
 * model_type.
 * @throws FILE_CORRUPT for a missing or invalid field, MODEL_UNSUPPORTED for an unsupported
 * feature.
 */
export type Architecture = (config: HuggingFaceConfig) => DecoderConfig;
