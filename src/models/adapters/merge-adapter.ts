import { addMatmul, compile, input, mul, dim, type CompiledGraph } from "../../engine/graph/index.js";
import type { DecoderConfig } from "../../engine/nn/index.js";
import { tensor, type Tensor } from "../../engine/tensor/index.js";
import { HEAD_MODULE } from "../architectures/index.js";
import { CausalLM } from "../causal-lm.js";
import { loraAName, loraBName, type LoraModule } from "./lora-module.js";

/**
 * Merges the adapter into the weights, W + scaling * B A, and returns a plain model, which decodes
 * faster and can be saved or take a new adapter. Merged weights are in memory. A tied output matrix
 * is untied where it or the embedding is adapted.
 */
export async function mergeAdapter(model: CausalLM): Promise<CausalLM> {
  const { adapter, runtime, weights } = model;
  if (adapter === undefined) return model;
  const modules = [...adapter.modules.values()];
  const { config, source } = modules.some(({ kind }) => kind !== "linear") ? untieHead(model) : model;
  const replaced = new Map<string, Tensor<"float32">>();
  // An untied output matrix starts from the embedding.
  if (config.names.head !== model.config.names.head)
    replaced.set(config.names.head, await readWeightTensor(model, model.config.names.head));
  for (const transposed of [false, true]) {
    const group = modules.filter((lora) => isTransposed(lora, config) === transposed);
    if (group.length === 0) continue;
    const session = await runtime.createSession(mergeGraph(transposed));
    for (const lora of group) {
      const name = weightName(lora, config);
      const stored = replaced.get(name) ?? (await readWeightTensor(model, name));
      const { merged } = await session.run({
        stored,
        a: model.parameters.view(loraAName(lora)),
        b: model.parameters.view(loraBName(lora)),
        scaling: tensor("float32", [], Float32Array.of(lora.scaling)),
      });
      replaced.set(name, tensor("float32", stored.shape, merged.data));
    }
    await session.release();
  }
  return new CausalLM(source, config, weights.withReplaced(replaced), runtime, model.backwardPrecision);
}

async function readWeightTensor({ weights }: CausalLM, name: string): Promise<Tensor<"float32">> {
  return tensor("float32", weights.parameters.get(name)!.shape, await weights.read(name));
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

/** Whether a module's weight is stored [in, out]; an embedding is, with a one-hot token as input. */
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
