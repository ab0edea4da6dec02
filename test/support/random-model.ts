import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { saveWeightFolder } from "../../src/models/files/index.js";
import { writeJson } from "../../src/core/files/json-file.js";
import { parameterShapes, parseModelConfig } from "../../src/models/architectures/index.js";
import { RandomStream } from "../../src/core/random/random-stream.js";
import { countElements } from "../../src/core/numbers.js";

const tokenizerFolder = fileURLToPath(new URL("../fixtures/text/model", import.meta.url));

/** The end token of the tokenizer that goes with the model. */
const END_TOKEN = 2;

export interface RandomModelOptions {
  readonly maxPositions?: number;
  readonly generationConfig?: Readonly<Record<string, unknown>>;
  /** Larger ones make the model's distributions more peaked. */
  readonly scale?: number;
  readonly withTokenizer?: boolean;
  /** Replaces or adds fields of config.json, such as model_type. */
  readonly config?: Readonly<Record<string, unknown>>;
}

/**
 * A small llama with random weights and a tokenizer of 320 tokens (ChatML), in a temporary folder.
 */
export async function writeRandomModel({
  maxPositions = 256,
  generationConfig = {},
  scale = 0.4,
  withTokenizer = true,
  config: configFields = {},
}: RandomModelOptions = {}): Promise<{ folder: string; remove: () => Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), "model-"));
  const config = {
    model_type: "llama",
    architectures: ["LlamaForCausalLM"],
    vocab_size: 320,
    hidden_size: 32,
    intermediate_size: 48,
    num_hidden_layers: 2,
    num_attention_heads: 4,
    num_key_value_heads: 2,
    max_position_embeddings: maxPositions,
    tie_word_embeddings: true,
    eos_token_id: END_TOKEN,
    ...configFields,
  };
  const random = new RandomStream(7);
  const shapes = parameterShapes(parseModelConfig(config, "config.json"));
  const tensors = [...shapes].map(([name, shape]) => ({
    name,
    shape,
    data: new Float32Array(countElements(shape)).map(() => (name.includes("norm") ? 1 : random.normal(0, scale))),
  }));
  await saveWeightFolder(folder, tensors);
  await writeJson(join(folder, "config.json"), config);
  await writeJson(join(folder, "generation_config.json"), generationConfig);
  if (withTokenizer) await cp(tokenizerFolder, folder, { recursive: true });
  return { folder, remove: () => rm(folder, { recursive: true }) };
}
