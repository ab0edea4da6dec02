import type { GgufArchitecture } from "../files/gguf/gguf-config.js";
import { LlamaGymError } from "../../core/errors.js";
import type { JsonObject } from "../../core/json.js";
import type { DecoderConfig } from "../../engine/nn/index.js";
import type { Architecture } from "./architecture.js";
import { gemma2 } from "./gemma2.js";
import { gemma3 } from "./gemma3.js";
import { gpt2 } from "./gpt2.js";
import { gptNeox } from "./gpt-neox.js";
import { granite, graniteMoeHybrid } from "./granite.js";
import { JsonFields } from "../../core/files/json-fields.js";
import { llama, mistral } from "./llama.js";
import { olmo2 } from "./olmo2.js";
import { phi } from "./phi.js";
import { phi3 } from "./phi3.js";
import { qwen2 } from "./qwen2.js";
import { qwen3 } from "./qwen3.js";
import { smollm3 } from "./smollm3.js";

export {
  findLayer,
  targetModules,
  HEAD_MODULE,
  HEAD_WEIGHT,
  linearModules,
  parameterShapes,
  type TargetModule,
} from "./parameter-shapes.js";
export { buildLegacyRope } from "./legacy-rope.js";
export { matchWeights } from "./match-weights.js";

/** Every architecture; a new one is a file and an entry here (docs/models.md). */
const architectures: readonly Architecture[] = [
  llama,
  mistral,
  smollm3,
  qwen2,
  qwen3,
  phi,
  phi3,
  gemma2,
  gemma3,
  olmo2,
  granite,
  graniteMoeHybrid,
  gptNeox,
  gpt2,
];

const byModelType = new Map(
  architectures.flatMap((architecture) => architecture.modelTypes.map((type) => [type, architecture] as const)),
);

/** Supported values of config.json's model_type. */
export const supportedModelTypes: readonly string[] = [...byModelType.keys()];

/** Supported architectures of GGUF files by general.architecture. */
export const ggufArchitectures: ReadonlyMap<string, GgufArchitecture> = new Map(
  architectures.flatMap(({ gguf }) => (gguf === undefined ? [] : [[gguf.name, gguf]])),
);

/** Returns the mapping to GGUF files of a model type. */
export function findGgufArchitecture(modelType: string): GgufArchitecture | undefined {
  const architecture = byModelType.get(modelType);
  return architecture?.gguf ?? architecture?.exportGguf;
}

/**
 * Parses a config.json of Transformers 5 or older into a network; `path` is the file's, for
 * messages. Parameters and modules keep Transformers' names. @throws MODEL_UNSUPPORTED for an
 * unknown model_type, a quantized checkpoint or an unsupported feature, FILE_CORRUPT for a missing
 * or invalid field.
 */
export function parseModelConfig(json: JsonObject, path: string): DecoderConfig {
  const config = new JsonFields(json, path);
  const modelType = config.text("model_type");
  if (modelType === undefined) throw config.invalidFieldError("model_type", `one of ${supportedModelTypes.join(", ")}`);
  const architecture = byModelType.get(modelType);
  if (architecture === undefined)
    throw new LlamaGymError(
      "MODEL_UNSUPPORTED",
      `model_type "${modelType}" in ${path} is not supported. Supported: ${supportedModelTypes.join(", ")}. ` +
        "See docs/models.md for adding an architecture.",
    );
  const quantization = config.object("quantization_config");
  if (quantization !== undefined) {
    const method = quantization.text("quant_method") ?? "an unnamed method";
    throw new LlamaGymError(
      "MODEL_UNSUPPORTED",
      `The weights of ${path} are quantized with ${method}, which is not supported. ` +
        "Use the unquantized checkpoint or a GGUF file.",
    );
  }
  return architecture.decoder(config);
}
