import type { DecoderConfig } from "../../engine/nn/index.js";
import type { GgufArchitecture } from "../files/gguf/gguf-config.js";
import type { JsonFields } from "../../core/files/json-fields.js";

export interface Architecture {
  /** Values of config.json's model_type. */
  readonly modelTypes: readonly string[];
  /**
   * Parses config.json into a network, with the defaults of Transformers' configuration class.
   * @throws FILE_CORRUPT for a missing or invalid field, MODEL_UNSUPPORTED for an unsupported
   * feature.
   */
  readonly decoder: (config: JsonFields) => DecoderConfig;
  /**
   * Mapping from and to GGUF files; undefined if llama.cpp converts the architecture to another
   * one.
   */
  readonly gguf?: GgufArchitecture;
  /** Mapping to GGUF files of the architecture that llama.cpp converts this one to. */
  readonly exportGguf?: GgufArchitecture | undefined;
}

/** Defines an architecture, to be listed in `architectures/index.ts`. */
export function defineArchitecture(architecture: Architecture): Architecture {
  return architecture;
}
