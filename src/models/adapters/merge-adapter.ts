import { LazyPromise } from "../../core/promise-cache.js";
import { addMatmul, compile, input, mul, dim, type CompiledGraph } from "../../engine/graph/index.js";
import type { DecoderConfig } from "../../engine/nn/index.js";
import type { Session } from "../../engine/runtime/index.js";
import { float32, tensor } from "../../engine/tensor/index.js";
import { LlamaGymError } from "../../core/errors.js";
import { CausalLM, withHead, type Adapter } from "../causal-lm.js";
import type { ComputedWeight } from "../weights/model-weights.js";
import { HEAD_WEIGHT } from "../architectures/index.js";
import { loraAName, loraBiasName, loraBName, loraMagnitudeName, type LoraModule } from "./lora-module.js";

/**
 * Merges the adapter into the weights, W + scaling * B A, and returns a plain model, which decodes
 * faster and can be saved or take a new adapter. It keeps the adapter's present values; a matrix is
 * merged when it is read, in chunks of rows. A tied output matrix is untied where it or the
 * embedding is adapted alone. @throws MODEL_UNSUPPORTED for a bias of B where the module has none.
 */
export async function mergeAdapter(model: CausalLM): Promise<CausalLM> {
  const { adapter, runtime, weights } = model;
  if (adapter === undefined) return model;
  const { parameters } = model;
  const modules = [...adapter.modules.values()];
  const { config, source } = differsFromEmbedding(adapter) ? untieHead(model) : model;
  const { embedding, head } = config.names;
  const replaced = new Map<string, ComputedWeight>();
  const getCurrent = (name: string) => replaced.get(name) ?? getStoredWeight(model, name);
  // An untied output matrix starts from the embedding.
  if (!weights.parameters.has(head)) replaced.set(head, getStoredWeight(model, embedding));
  for (const name of adapter.ownParameters) {
    const values = await parameters.read(name);
    replaced.set(name, { shape: parameters.shape(name), readChunks: () => toChunks(values) });
  }
  const sessions = [false, true].map(
    (transposed) => new LazyPromise(() => runtime.createSession(mergeGraph(transposed))),
  );
  for (const lora of modules) {
    const name = weightName(lora, config);
    const transposed = isTransposed(lora, config);
    const merged = mergeWeight(getCurrent(name), {
      lora,
      transposed,
      a: await parameters.read(loraAName(lora)),
      b: await parameters.read(loraBName(lora)),
      session: sessions[Number(transposed)],
    });
    replaced.set(
      name,
      lora.useDora ? scaleToNorms(merged, await parameters.read(loraMagnitudeName(lora)), transposed) : merged,
    );
    if (lora.hasBias) {
      const bias = `${lora.module}.bias`;
      if (!weights.parameters.has(bias)) throw missingBiasError(lora);
      replaced.set(bias, await addBias(getCurrent(bias), lora, await parameters.read(loraBiasName(lora))));
    }
  }
  for (const { name, tokens, inEmbedding, inHead } of adapter.trainedTokens) {
    const rows = await parameters.read(name);
    for (const matrix of new Set([...(inEmbedding ? [embedding] : []), ...(inHead ? [head] : [])]))
      replaced.set(matrix, replaceRows(getCurrent(matrix), tokens, rows));
  }
  return new CausalLM(source, config, weights.withReplaced(replaced), runtime, model.gradientConfig);
}

/** Whether an adapter changes the embedding or the output matrix and not both alike. */
function differsFromEmbedding({ modules, trainedTokens, untiesHead }: Adapter): boolean {
  return (
    untiesHead ||
    [...modules.values()].some(({ kind, tiesHead }) => kind !== "linear" && !tiesHead) ||
    trainedTokens.some(({ inEmbedding, inHead }) => inEmbedding !== inHead)
  );
}

async function* toChunks(values: Float32Array): AsyncGenerator<Float32Array> {
  yield await Promise.resolve(values);
}

/** Scales the weights of each output to given norms (DoRA). */
function scaleToNorms(weight: ComputedWeight, norms: Float32Array, transposed: boolean): ComputedWeight {
  const columns = weight.shape[1];
  async function computeFactors(): Promise<Float64Array> {
    const sums = new Float64Array(norms.length);
    let start = 0;
    for await (const values of weight.readChunks()) {
      values.forEach((value, i) => {
        sums[transposed ? i % columns : start + Math.floor(i / columns)] += value * value;
      });
      start += values.length / columns;
    }
    return sums.map((sum, i) => norms[i] / Math.sqrt(sum));
  }
  async function* readChunks(): AsyncGenerator<Float32Array> {
    const factors = await computeFactors();
    let start = 0;
    for await (const values of weight.readChunks()) {
      yield values.map((value, i) => value * factors[transposed ? i % columns : start + Math.floor(i / columns)]);
      start += values.length / columns;
    }
  }
  return { shape: weight.shape, readChunks };
}

async function addBias(bias: ComputedWeight, { scaling }: LoraModule, added: Float32Array): Promise<ComputedWeight> {
  let values: Float32Array | undefined;
  for await (const chunk of bias.readChunks()) values = chunk.map((value, i) => value + scaling * added[i]);
  return { shape: bias.shape, readChunks: () => toChunks(values!) };
}

function missingBiasError({ module }: LoraModule): LlamaGymError {
  return new LlamaGymError(
    "MODEL_UNSUPPORTED",
    `The adapter (lora_bias) adds a bias to ${module}, which has none in the model, so it cannot be merged. Use it as an adapter.`,
  );
}

/** Replaces some rows of a matrix. */
function replaceRows(weight: ComputedWeight, rows: readonly number[], values: Float32Array): ComputedWeight {
  const columns = weight.shape[1];
  async function* readChunks(): AsyncGenerator<Float32Array> {
    let start = 0;
    for await (const chunk of weight.readChunks()) {
      const changed = chunk.slice();
      rows.forEach((row, i) => {
        if (row >= start && (row - start) * columns < chunk.length)
          changed.set(values.subarray(i * columns, (i + 1) * columns), (row - start) * columns);
      });
      yield changed;
      start += chunk.length / columns;
    }
  }
  return { shape: weight.shape, readChunks };
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
function untieHead({ config, source, weights }: CausalLM): Pick<CausalLM, "config" | "source"> {
  if (config.names.head !== config.names.embedding && weights.parameters.has(config.names.head))
    return { config, source };
  return {
    config: withHead(config, HEAD_WEIGHT),
    source: { ...source, config: { ...source.config, tie_word_embeddings: false } },
  };
}
