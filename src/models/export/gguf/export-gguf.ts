import { fs } from "#platform";
import { LlamaGymError } from "../../../core/errors.js";
import { findGgufArchitecture } from "../../architectures/index.js";
import type { CausalLM } from "../../causal-lm.js";
import { writeFileAtomic } from "../../../core/files/write-file-atomic.js";
import type { Tokenizer } from "../../text/tokenizer.js";
import type { OnWeightsProgress } from "../../weight-reader.js";
import { describeGgufModel } from "./gguf-fields.js";
import { listGgufTensors } from "./gguf-tensors.js";
import { describeGgufVocabulary } from "./gguf-vocabulary.js";
import { formatModelfile } from "./modelfile.js";
import { writeGguf, type GgufFieldValue, type GgufTensorType } from "./write-gguf.js";

/** general.file_type of llama.cpp. */
const FILE_TYPES: Readonly<Record<GgufTensorType, number>> = { F32: 0, F16: 1, Q4_0: 2, Q8_0: 7 };

const QUANTIZATION_VERSION = 2;

interface GgufExportOptions {
  readonly type: GgufTensorType;
  /** general.name. */
  readonly name: string;
  readonly onProgress?: OnWeightsProgress;
  readonly onWarning?: (message: string) => void;
}

/**
 * Writes model.gguf with the tokenizer and the chat template inside, and Ollama's Modelfile.
 * @throws MODEL_UNSUPPORTED, TOKENIZER_UNSUPPORTED, FILE_WRITE_FAILED.
 */
export async function exportGguf(
  model: CausalLM,
  tokenizer: Tokenizer,
  folder: string,
  { type, name, onProgress, onWarning }: GgufExportOptions,
): Promise<void> {
  const { config, source, eosTokenIds } = model;
  const architecture = findGgufArchitecture(config.modelType);
  if (architecture === undefined)
    throw new LlamaGymError(
      "MODEL_UNSUPPORTED",
      `Models of model_type "${config.modelType}" cannot be exported to GGUF. Use --format onnx or merged.`,
    );
  const description = describeGgufModel(config, architecture.name);
  const tensors = [...listGgufTensors(model, architecture, { type, onProgress }), ...description.tensors];
  const isQuantized = type === "Q8_0" || type === "Q4_0";
  const fields: Record<string, GgufFieldValue> = {
    "general.architecture": architecture.name,
    "general.type": "model",
    "general.name": name,
    "general.file_type": FILE_TYPES[type],
    ...(isQuantized ? { "general.quantization_version": QUANTIZATION_VERSION } : {}),
    ...description.fields,
    ...describeGgufVocabulary({
      tokenizer,
      vocabSize: config.vocabSize,
      eosTokenIds,
      architecture: architecture.name,
      onWarning,
    }),
  };
  await writeGguf(fs.join(folder, "model.gguf"), fields, tensors);
  await writeFileAtomic(
    fs.join(folder, "Modelfile"),
    formatModelfile("model.gguf", tokenizer, source.generationConfig),
  );
}
