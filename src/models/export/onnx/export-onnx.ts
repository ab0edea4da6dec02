import { viewBytes } from "../../../core/bytes.js";
import { fs } from "#platform";
import { countElements } from "../../../core/numbers.js";
import { LlamaGymError } from "../../../core/errors.js";
import { compile, type WeightLocation } from "../../../engine/graph/index.js";
import { byteLength } from "../../../engine/tensor/index.js";
import { linearModules } from "../../architectures/index.js";
import type { CausalLM } from "../../causal-lm.js";
import { writeJson } from "../../../core/files/json-file.js";
import { float32ToFloat16 } from "../../files/float16.js";
import { replaceFileAtomic, writeFileAtomic } from "../../../core/files/write-file-atomic.js";
import { ModelParameterScope } from "../../model-parameter-scope.js";
import type { StoredParameter } from "../../weights/stored-parameter.js";
import { buildSavedConfig } from "../../save-model.js";
import type { Tokenizer } from "../../text/tokenizer.js";
import { WeightReader, type OnWeightsProgress } from "../../weight-reader.js";
import { BLOCK_SIZE, quantize } from "../../weights/quantize.js";
import { transposeMatrix } from "../../weights/convert-weight.js";
import { onnxDecoder } from "./onnx-decoder.js";

/** Stored type of the weights in an ONNX file. */
export type OnnxType = "F32" | "F16" | "Q8" | "Q4";

/** File names by transformers.js's convention for its dtypes fp32, fp16, q8 and q4. */
const FILE_NAMES: Readonly<Record<OnnxType, string>> = {
  F32: "model.onnx",
  F16: "model_fp16.onnx",
  Q8: "model_quantized.onnx",
  Q4: "model_q4.onnx",
};

/** transformers.js's names of the types. */
const DTYPES: Readonly<Record<OnnxType, string>> = { F32: "fp32", F16: "fp16", Q8: "q8", Q4: "q4" };

/** Requirement of GroupQueryAttention. */
const HEAD_DIM_MULTIPLE = 8;

/** Data begin at multiples of this, so that any element type is aligned. */
const ALIGNMENT = 64;

/**
 * Writes a folder that transformers.js opens: onnx/model*.onnx with its weights in an external
 * file, config.json, generation_config.json and the tokenizer's files. Activations and cache are
 * float32 in all types. @throws MODEL_UNSUPPORTED, FILE_WRITE_FAILED.
 */
export async function exportOnnx(
  model: CausalLM,
  tokenizer: Tokenizer,
  folder: string,
  { type, onProgress }: { readonly type: OnnxType; readonly onProgress?: OnWeightsProgress },
): Promise<void> {
  const { headDim } = model.config;
  if (headDim % HEAD_DIM_MULTIPLE !== 0)
    throw new LlamaGymError(
      "MODEL_UNSUPPORTED",
      `ONNX Runtime's GroupQueryAttention needs heads of a multiple of ${HEAD_DIM_MULTIPLE} dimensions, got ${headDim}. Use --format merged.`,
    );
  const file = FILE_NAMES[type];
  const parameters = chooseStorage(model, type);
  const { transposedWeights, names } = model.config;
  const scope = new ModelParameterScope({
    parameters,
    transposedWeights,
    adapter: new Map(),
    head: names.head,
    adapterMode: "unmerged",
  });
  const tables = new Map<string, Float32Array>();
  const graph = compile(onnxDecoder(model.config, scope, tables));
  const locations = new Map<string, WeightLocation>();
  let end = 0;
  for (const { name, dtype, shape } of graph.weights) {
    const offset = Math.ceil(end / ALIGNMENT) * ALIGNMENT;
    const bytes = byteLength(dtype, countElements(shape as readonly number[]));
    locations.set(name, { file: `${file}_data`, offset, byteLength: bytes });
    end = offset + bytes;
  }
  // Parts of a quantized parameter have its name and a suffix.
  const findParameter = (name: string) => (parameters.has(name) ? name : name.slice(0, name.lastIndexOf(".")));
  const readNames = [...locations.keys()].filter((name) => !tables.has(name)).map(findParameter);
  const reader = new WeightReader(model, onProgress, readNames);
  async function* readChunks(name: string): AsyncGenerator<Uint8Array> {
    const table = tables.get(name);
    if (table !== undefined) return yield viewBytes(table);
    const source = findParameter(name);
    const parameter = parameters.get(source)!;
    if (parameter.kind === "quantized") {
      const [outFeatures, inFeatures] = parameter.shape;
      const chunks = transposedWeights
        ? [transposeMatrix(await reader.read(source), inFeatures, outFeatures)]
        : reader.readChunks(source);
      for await (const values of chunks) {
        const { codes, scales } = quantize(values, parameter.bits);
        yield name.endsWith(".bytes") ? codes : viewBytes(scales);
      }
      return;
    }
    const isFloat16 = parameter.kind === "frozen" && parameter.dtype === "float16";
    for await (const values of reader.readChunks(name)) yield isFloat16 ? toFloat16(values) : viewBytes(values);
  }
  const path = fs.join(folder, "onnx", file);
  await replaceFileAtomic(`${path}_data`, async (data) => {
    for (const [name, { offset }] of locations) {
      let position = offset;
      for await (const bytes of readChunks(name)) {
        await data.write(bytes, position);
        position += bytes.length;
      }
    }
  });
  // Of the forms of the graph, only the one for WebGPU consists of operators that browsers also
  // have.
  await writeFileAtomic(
    path,
    graph.serialize(({ name }) => locations.get(name)!, "webgpu"),
  );
  await writeJson(fs.join(folder, "config.json"), {
    ...buildSavedConfig(model),
    "transformers.js_config": { dtype: DTYPES[type], use_external_data_format: { [file]: 1 } },
  });
  await writeJson(fs.join(folder, "generation_config.json"), {
    ...model.source.generationConfig,
    eos_token_id: model.eosTokenIds.length === 1 ? model.eosTokenIds[0] : [...model.eosTokenIds],
  });
  await saveTokenizer(tokenizer, folder);
}

/**
 * transformers.js reads chat templates from tokenizer_config.json only, and added tokens from
 * tokenizer.json.
 */
async function saveTokenizer(tokenizer: Tokenizer, folder: string): Promise<void> {
  await tokenizer.save(folder);
  await writeJson(fs.join(folder, "tokenizer.json"), {
    ...(tokenizer.files.tokenizerJson as object),
    added_tokens: tokenizer.addedTokens.map(({ singleWord, ...token }) => ({ ...token, single_word: singleWord })),
  });
  const templates = [...tokenizer.chatTemplates].map(([name, template]) => ({ name, template }));
  if (templates.length === 0) return;
  const isSingle = templates.length === 1 && templates[0].name === "default";
  await writeJson(fs.join(folder, "tokenizer_config.json"), {
    ...(tokenizer.files.tokenizerConfig as object | undefined),
    chat_template: isSingle ? templates[0].template : templates,
  });
}

/** The embedding and norms stay in float32 when matrices are quantized. */
function chooseStorage({ config, weights }: CausalLM, type: OnnxType): ReadonlyMap<string, StoredParameter> {
  const matrices = new Set(linearModules(config).map(({ name }) => `${name}.weight`));
  const stored = new Map<string, StoredParameter>();
  for (const name of weights.parameters.keys()) {
    const shape = weights.shape(name);
    const transposedShape = config.transposedWeights ? [...shape].reverse() : shape;
    if (type.startsWith("Q") && matrices.has(name) && transposedShape[1] % BLOCK_SIZE === 0)
      stored.set(name, { kind: "quantized", shape: transposedShape, bits: type === "Q8" ? 8 : 4 });
    else stored.set(name, { kind: "frozen", shape, dtype: type === "F16" && shape.length > 1 ? "float16" : "float32" });
  }
  return stored;
}

function toFloat16(values: Float32Array): Uint8Array {
  const halves = new Uint16Array(values.length);
  float32ToFloat16(values, halves);
  return viewBytes(halves);
}
