import { join } from "node:path";
import { saveWeightFolder } from "../../src/models/files/index.js";
import { writeJson } from "../../src/core/files/json-file.js";
import { parameterShapes, parseModelConfig } from "../../src/models/architectures/index.js";
import { countElements } from "../../src/core/numbers.js";
import type { RandomStream } from "../../src/core/random/random-stream.js";
import { writeTokenizerFolder, type TokenizerFiles } from "../../src/engine.js";
import { END_TOKEN_ID, PAD_TOKEN_ID } from "./tokenizer.js";

export interface ModelSize {
  readonly vocabSize: number;
  readonly hiddenSize: number;
  readonly intermediateSize: number;
  readonly layers: number;
  readonly heads: number;
  readonly contextLength: number;
}

const EMBEDDING_STD = 0.05;

/**
 * Writes a Llama model with random weights, and its tokenizer; gives the number of its parameters.
 */
export async function writeUntrainedModel(
  folder: string,
  size: ModelSize,
  tokenizer: TokenizerFiles,
  random: RandomStream,
): Promise<number> {
  const config = buildConfig(size);
  const shapes = parameterShapes(parseModelConfig(config, "config.json"));
  const tensors = [...shapes].map(([name, shape]) => ({ name, shape, data: initialValues(name, shape, size, random) }));
  await saveWeightFolder(folder, tensors);
  await writeJson(join(folder, "config.json"), config);
  await writeJson(join(folder, "generation_config.json"), {
    eos_token_id: END_TOKEN_ID,
    pad_token_id: PAD_TOKEN_ID,
    do_sample: true,
    temperature: 1,
  });
  await writeTokenizerFolder(tokenizer, folder);
  return tensors.reduce((sum, { data }) => sum + data.length, 0);
}

function buildConfig({ vocabSize, hiddenSize, intermediateSize, layers, heads, contextLength }: ModelSize) {
  return {
    architectures: ["LlamaForCausalLM"],
    model_type: "llama",
    vocab_size: vocabSize,
    hidden_size: hiddenSize,
    intermediate_size: intermediateSize,
    num_hidden_layers: layers,
    num_attention_heads: heads,
    num_key_value_heads: heads,
    head_dim: hiddenSize / heads,
    max_position_embeddings: contextLength,
    hidden_act: "silu",
    rms_norm_eps: 1e-5,
    rope_theta: 10_000,
    attention_bias: false,
    mlp_bias: false,
    tie_word_embeddings: true,
    bos_token_id: null,
    eos_token_id: END_TOKEN_ID,
    pad_token_id: PAD_TOKEN_ID,
  };
}

/**
 * Norms start at 1; matrices so that their outputs keep their inputs' size, and what a layer adds
 * is small at first.
 */
function initialValues(
  name: string,
  shape: readonly number[],
  { layers }: ModelSize,
  random: RandomStream,
): Float32Array {
  const draw = (deviation: number) =>
    Float32Array.from({ length: countElements(shape) }, () => random.normal(0, deviation));
  if (name.includes("norm")) return new Float32Array(countElements(shape)).fill(1);
  if (name.includes("embed")) return draw(EMBEDDING_STD);
  const deviation = 1 / Math.sqrt(shape[1]);
  return draw(/o_proj|down_proj/.test(name) ? deviation / Math.sqrt(2 * layers) : deviation);
}
