import { LazyPromise } from "../../core/promise-cache.js";
import { addMatmul, compile, input, mul, dim, type CompiledGraph } from "../../engine/graph/index.js";
import type { DecoderConfig } from "../../engine/nn/index.js";
import type { Session } from "../../engine/runtime/index.js";
import { float32, tensor } from "../../engine/tensor/index.js";
import { HEAD_MODULE } from "../architectures/index.js";
import { CausalLM } from "../causal-lm.js";
import type { ComputedWeight } from "../weights/model-weights.js";
import { loraAName, loraBName, type LoraModule } from "./lora-module.js";

/**
 * Merges the adapter into the weights, W + scaling * B A, and returns a plain model, which decodes
 * faster and can be saved or take a new adapter. It keeps the adapter's present values; a matrix is
 * merged when it is read, in chunks of rows. A tied output matrix is untied where it or the
 * embedding is adapted.
 */
export async function mergeAdapter(model: CausalLM): Promise<CausalLM> {
  const { adapter, runtime, weights } = model;
  if (adapter === undefined) return model;
  const modules = [...adapter.modules.values()];
  const { config, source } = modules.some(({ kind }) => kind !== "linear") ? untieHead(model) : model;
  const replaced = new Map<string, ComputedWeight>();
  // An untied output matrix starts from the embedding.
  if (config.names.head !== model.config.names.head)
    replaced.set(config.names.head, getStoredWeight(model, model.config.names.head));
  const sessions = [false, true].map(
    (transposed) => new LazyPromise(() => runtime.createSession(mergeGraph(transposed))),
  );
  for (const lora of modules) {
    const name = weightName(lora, config);
    const transposed = isTransposed(lora, config);
    replaced.set(
      name,
      mergeWeight(replaced.get(name) ?? getStoredWeight(model, name), {
        lora,
        transposed,
        a: await model.parameters.read(loraAName(lora)),
        b: await model.parameters.read(loraBName(lora)),
        session: sessions[Number(transposed)],
      }),
    );
  }
  return new CausalLM(source, config, weights.withReplaced(replaced), runtime, model.gradientConfig);
}

function getStoredWeight({ weights }: CausalLM, name: string): ComputedWeight {
  return { shape: weights.shape(name), readChunks: () => weights.readChunks(name) };
}

interface MatrixUpdate {
  readonly lora: LoraModule;
  /** Whether the matrix is stored [in, out]. */
  readonly transposed: boolean;
  /** [rank, in] */
  readonly a: Float32Array;
  /** [out, rank] */
  readonly b: Float32Array;
  readonly session: LazyPromise<Session>;
}

/** Returns a matrix with its update added to each chunk of rows. */
function mergeWeight(weight: ComputedWeight, { lora, transposed, a, b, session }: MatrixUpdate): ComputedWeight {
  const { rank, inFeatures, outFeatures } = lora;
  const columns = weight.shape[1];
  async function* readChunks(): AsyncGenerator<Float32Array> {
    const merging = await session.get();
    const scaling = float32([lora.scaling], []);
    let start = 0;
    for await (const values of weight.readChunks()) {
      const rows = values.length / columns;
      const factors = transposed
        ? {
            a: tensor("float32", [rank, rows], sliceColumns(a, inFeatures, start, rows)),
            b: tensor("float32", [outFeatures, rank], b),
          }
        : {
            a: tensor("float32", [rank, inFeatures], a),
            b: tensor("float32", [rows, rank], b.subarray(start * rank, (start + rows) * rank)),
          };
      const stored = tensor("float32", [rows, columns], values);
      yield (await merging.run({ stored, ...factors, scaling })).merged.data;
      start += rows;
    }
  }
  return { shape: weight.shape, readChunks };
}

function sliceColumns(matrix: Float32Array, columns: number, start: number, count: number): Float32Array {
  const result = new Float32Array((matrix.length / columns) * count);
  for (let row = 0; row * columns < matrix.length; row++)
    result.set(matrix.subarray(row * columns + start, row * columns + start + count), row * count);
  return result;
}

/** Computes stored + scaling * B A, or its transpose where weights are stored [in, out]. */
function mergeGraph(transposed: boolean): CompiledGraph {
  const [rows, columns, rank] = ["rows", "columns", "rank"].map(dim);
  const scaling = input("scaling", "float32", []);
  const [a, b] = [input("a", "float32", [rank, columns]), input("b", "float32", [rows, rank])];
  const stored = input("stored", "float32", transposed ? [columns, rows] : [rows, columns]);
  const scaled = mul(b, scaling);
  const merged = transposed
    ? addMatmul(stored, a, scaled, { transposeA: true, transposeB: true })
    : addMatmul(stored, scaled, a);
  return compile({ merged });
}

/**
 * Whether a module's weight is stored [in, out]; an embedding is, with a one-hot token as input.
 */
function isTransposed({ kind }: LoraModule, { transposedWeights }: DecoderConfig): boolean {
  return kind === "embedding" || (kind === "linear" && transposedWeights);
}

function weightName({ kind, module }: LoraModule, { names }: DecoderConfig): string {
  return kind === "head" ? names.head : `${module}.weight`;
}

/** Returns the configuration with an untied output matrix. */
function untieHead({ config, source }: CausalLM): Pick<CausalLM, "config" | "source"> {
  if (config.names.head !== config.names.embedding) return { config, source };
  return {
    config: { ...config, names: { ...config.names, head: `${HEAD_MODULE}.weight` } },
    source: { ...source, config: { ...source.config, tie_word_embeddings: false } },
  };
}
