import { LlamaGymError } from "../../../core/errors.js";
import type { DecoderConfig } from "../../../engine/nn/index.js";
import type { CausalLM } from "../../causal-lm.js";
import type { GgufArchitecture } from "../../files/gguf/gguf-config.js";
import { deinterleaveRow } from "../../files/gguf/gguf-weights.js";
import { BLOCK_SIZE } from "../../weights/quantize.js";
import { transposeMatrix } from "../../weights/convert-weight.js";
import { WeightReader, type OnWeightsProgress } from "../../weight-reader.js";
import type { GgufTensorToSave, GgufTensorType } from "./write-gguf.js";

/** Architectures whose output matrix llama.cpp does not tie to the embedding. */
const UNTIED: ReadonlySet<string> = new Set(["phi2", "olmo2"]);

/**
 * Name of a parameter in GGUF, with the part that decides its layout: "attn_q" of
 * "blk.0.attn_q.weight".
 */
interface GgufName {
  readonly name: string;
  readonly part: string;
}

/**
 * Lists a model's parameters under llama.cpp's names and in its layout. @throws MODEL_UNSUPPORTED.
 */
export function listGgufTensors(
  model: CausalLM,
  architecture: GgufArchitecture,
  { type, onProgress }: { readonly type: GgufTensorType; readonly onProgress?: OnWeightsProgress | undefined },
): GgufTensorToSave[] {
  const { config, weights } = model;
  const parameters = [...weights.parameters.keys()];
  const findHalves = (parameter: string) => architecture.halves?.[findGgufName(architecture, parameter)?.part ?? ""];
  // Each half reads the whole parameter.
  const reads = parameters.flatMap((parameter) => (findHalves(parameter) ?? [parameter]).map(() => parameter));
  const reader = new WeightReader(model, onProgress, reads);
  const tensors = parameters.flatMap((parameter): GgufTensorToSave[] => {
    const shape = weights.shape(parameter);
    const found = findGgufName(architecture, parameter);
    if (found === undefined)
      throw new LlamaGymError(
        "MODEL_UNSUPPORTED",
        `llama.cpp's architecture "${architecture.name}" has no tensor for ${parameter}, so this model cannot be exported to GGUF. Use --format onnx or merged.`,
      );
    const { name, part } = found;
    const halves = findHalves(parameter);
    if (halves !== undefined) {
      const halfShape = [shape[0] / 2, ...shape.slice(1)];
      return halves.map((half, i) => ({
        name: name.replace(part, half),
        shape: halfShape,
        type: chooseType(halfShape, half, type, config),
        readChunks: async function* () {
          const values = await reader.read(parameter);
          yield values.subarray((i * values.length) / 2, ((i + 1) * values.length) / 2);
        },
      }));
    }
    const isTransposed = shape.length === 2 && architecture.transposed?.includes(part) === true;
    const storedShape = isTransposed ? [shape[1], shape[0]] : shape;
    const heads = part === "attn_q" ? config.heads : part === "attn_k" ? config.keyValueHeads : undefined;
    async function* readChunks(): AsyncGenerator<Float32Array> {
      if (isTransposed) yield transposeMatrix(await reader.read(parameter), shape[0], shape[1]);
      else if (architecture.interleavedRotary === true && heads !== undefined)
        yield interleaveRows(await reader.read(parameter), shape[0], shape[0] / heads);
      else if (architecture.hasNormOffset === true && part.endsWith("norm"))
        yield (await reader.read(parameter)).map((value) => value + 1);
      else yield* reader.readChunks(parameter);
    }
    return [{ name, shape: storedShape, type: chooseType(storedShape, part, type, config), readChunks }];
  });
  const embedding = tensors.find(({ name }) => name === "token_embd.weight");
  const isTied = config.names.head === config.names.embedding;
  return UNTIED.has(architecture.name) && isTied && embedding !== undefined
    ? [...tensors, { ...embedding, name: "output.weight" }]
    : tensors;
}

function findGgufName(
  { globalTensors, layerPrefix, layerTensors }: GgufArchitecture,
  parameter: string,
): GgufName | undefined {
  const [, module, suffix] = /^(.*)\.(weight|bias)$/u.exec(parameter) ?? [];
  if (module === undefined) return undefined;
  const findPart = (names: Readonly<Record<string, string>>, name: string) =>
    Object.keys(names).find((part) => names[part] === name);
  const global = findPart(globalTensors, module);
  if (global !== undefined) return { name: `${global}.${suffix}`, part: global };
  if (!module.startsWith(layerPrefix)) return undefined;
  const [, layer, inLayer] = /^(\d+)\.(.*)$/u.exec(module.slice(layerPrefix.length)) ?? [];
  const part = findPart(layerTensors, inLayer);
  return part === undefined ? undefined : { name: `blk.${layer}.${part}.${suffix}`, part };
}

/**
 * Vectors and positions stay in float32, as llama.cpp requires; of 4-bit files the output matrix
 * has 8 bits.
 */
function chooseType(
  shape: readonly number[],
  part: string,
  type: GgufTensorType,
  { names }: DecoderConfig,
): GgufTensorType {
  if (shape.length < 2 || part === "position_embd" || type === "F32") return "F32";
  if (type === "F16" || shape[1] % BLOCK_SIZE !== 0) return "F16";
  const isOutput = part === (names.head === names.embedding ? "token_embd" : "output");
  return isOutput ? "Q8_0" : type;
}

/** Interleaves the halves of each head's rows, which rotates adjacent pairs instead of halves. */
function interleaveRows(values: Float32Array, rows: number, rowsPerHead: number): Float32Array {
  const width = values.length / rows;
  const result = new Float32Array(values.length);
  for (let row = 0; row < rows; row++) {
    const from = deinterleaveRow(row, rowsPerHead) * width;
    result.set(values.subarray(from, from + width), row * width);
  }
  return result;
}
