import type { JsonObject } from "../../core/json.js";
import type { ModelEntry } from "./model-entry.js";

/**
 * Registered models, grouped by family and ordered by size: those named by LlamaGym and its
 * successors, and current small ones. Networks follow their config.json, parameter counts their
 * model cards. Columns: hub id, millions of parameters, license, model_type, hidden size, layers,
 * heads, key/value heads, head size, feed-forward size, vocabulary, context, tags.
 */
const TABLE = `
HuggingFaceTB/SmolLM-135M-Instruct   135 Apache-2.0    llama         576     30     9  3  64  1536  49152    2048
HuggingFaceTB/SmolLM-360M-Instruct   362 Apache-2.0    llama         960     32    15  5  64  2560  49152    2048
HuggingFaceTB/SmolLM-1.7B-Instruct  1711 Apache-2.0    llama        2048     24    32 32  64  8192  49152    2048
HuggingFaceTB/SmolLM2-135M-Instruct  135 Apache-2.0    llama         576     30     9  3  64  1536  49152    8192
HuggingFaceTB/SmolLM2-360M-Instruct  362 Apache-2.0    llama         960     32    15  5  64  2560  49152    8192
HuggingFaceTB/SmolLM2-1.7B-Instruct 1711 Apache-2.0    llama        2048     24    32 32  64  8192  49152    8192
HuggingFaceTB/SmolLM3-3B            3075 Apache-2.0    smollm3      2048     36    16  4 128 11008 128256   65536 reasoning
Qwen/Qwen2-0.5B-Instruct             494 Apache-2.0    qwen2         896     24    14  2  64  4864 151936   32768
Qwen/Qwen2-1.5B-Instruct            1544 Apache-2.0    qwen2        1536     28    12  2 128  8960 151936   32768
Qwen/Qwen2.5-0.5B-Instruct           494 Apache-2.0    qwen2         896     24    14  2  64  4864 151936   32768
Qwen/Qwen2.5-1.5B-Instruct          1544 Apache-2.0    qwen2        1536     28    12  2 128  8960 151936   32768
Qwen/Qwen2.5-3B-Instruct            3086 Qwen_research qwen2        2048     36    16  2 128 11008 151936   32768
Qwen/Qwen3-0.6B                      596 Apache-2.0    qwen3        1024     28    16  8 128  3072 151936   40960 reasoning
Qwen/Qwen3-1.7B                     1721 Apache-2.0    qwen3        2048     28    16  8 128  6144 151936   40960 reasoning
Qwen/Qwen3-4B                       4022 Apache-2.0    qwen3        2560     36    32  8 128  9728 151936   40960 reasoning
Qwen/Qwen3-4B-Instruct-2507         4022 Apache-2.0    qwen3        2560     36    32  8 128  9728 151936  262144
TinyLlama/TinyLlama-1.1B-Chat-v1.0  1100 Apache-2.0    llama        2048     22    32  4  64  5632  32000    2048 untied
meta-llama/Llama-3.2-1B-Instruct    1236 Llama_3.2     llama        2048     16    32  8  64  8192 128256  131072 gated
meta-llama/Llama-3.2-3B-Instruct    3213 Llama_3.2     llama        3072     28    24  8 128  8192 128256  131072 gated
meta-llama/Llama-2-7b-hf            6738 Llama_2       llama        4096     32    32 32 128 11008  32000    4096 untied base gated
meta-llama/Llama-2-7b-chat-hf       6738 Llama_2       llama        4096     32    32 32 128 11008  32000    4096 untied gated
meta-llama/Llama-3.1-8B-Instruct    8030 Llama_3.1     llama        4096     32    32  8 128 14336 128256  131072 untied gated
google/gemma-3-270m-it               268 Gemma         gemma3_text   640     18     4  1 256  2048 262144   32768 gated no-system
google/gemma-3-1b-it                1000 Gemma         gemma3_text  1152     26     4  1 256  6912 262144   32768 gated no-system
google/gemma-2-2b-it                2614 Gemma         gemma2       2304     26     8  4 256  9216 256000    8192 gated no-system
ibm-granite/granite-4.0-350m         352 Apache-2.0    granitemoehybrid 1024 28    16  4  64  2048 100352   32768
ibm-granite/granite-4.0-1b          1631 Apache-2.0    granitemoehybrid 2048 40    16  4 128  4096 100352  131072
ibm-granite/granite-3.3-2b-instruct 2534 Apache-2.0    granite      2048     40    32  8  64  8192  49159  131072
allenai/OLMo-2-0425-1B-Instruct     1485 Apache-2.0    olmo2        2048     16    16 16 128  8192 100352    4096 untied
EleutherAI/pythia-160m               162 Apache-2.0    gpt_neox      768     12    12 12  64  3072  50304    2048 untied base
EleutherAI/pythia-410m               405 Apache-2.0    gpt_neox     1024     24    16 16  64  4096  50304    2048 untied base
EleutherAI/pythia-1b                1012 Apache-2.0    gpt_neox     2048     16     8  8 256  8192  50304    2048 untied base
microsoft/phi-1_5                   1418 MIT           phi          2048     24    32 32  64  8192  51200    2048 untied base
microsoft/phi-2                     2780 MIT           phi          2560     32    32 32  80 10240  51200    2048 untied base
microsoft/Phi-3-mini-4k-instruct    3821 MIT           phi3         3072     32    32 32  96  8192  32064    4096 untied
microsoft/Phi-4-mini-instruct       3836 MIT           phi3         3072     32    24  8 128  8192 200064  131072
mistralai/Mistral-7B-Instruct-v0.3  7248 Apache-2.0    mistral      4096     32    32  8 128 14336  32768   32768 untied
distilbert/distilgpt2                 82 Apache-2.0    gpt2          768      6    12 12  64  3072  50257    1024 base
openai-community/gpt2                124 MIT           gpt2          768     12    12 12  64  3072  50257    1024 base
openai-community/gpt2-medium         355 MIT           gpt2         1024     24    16 16  64  4096  50257    1024 base
openai-community/gpt2-large          774 MIT           gpt2         1280     36    20 20  64  5120  50257    1024 base
`;

const BASE_NOTE = "base model without a chat template; uses a plain transcript, completions end at the line break";

/** Notes and defaults by tag. "untied" separates the output matrix from the embedding. */
const tagFields: Readonly<Record<string, Partial<ModelEntry>>> = {
  untied: {},
  base: { kind: "base", note: BASE_NOTE },
  gated: { gated: true },
  "no-system": { note: "no system role; the system prompt precedes the first observation" },
  reasoning: { note: "reasoning model; its defaults start completions after an empty reasoning block" },
};

/** The empty reasoning block of chat templates with thinking disabled. */
const emptyReasoning: Readonly<Record<string, string>> = {
  qwen3: "<think>\n\n</think>\n\n",
  smollm3: "<think>\n\n</think>\n",
};

function parseRow(row: string): ModelEntry {
  const [id, millions, license, modelType, ...rest] = row.split(/ +/u);
  const sizes = rest.slice(0, 8).map(Number);
  const tags = rest.slice(8);
  return {
    id,
    parameters: 1e6 * Number(millions),
    license: license.replace("_", " "),
    config: modelType === "gpt2" ? buildGpt2Config(sizes) : buildConfig(modelType, sizes, !tags.includes("untied")),
    ...Object.assign({}, ...tags.map((tag) => tagFields[tag])),
    ...(tags.includes("reasoning") && { defaults: { completionPrefix: emptyReasoning[modelType] } }),
  };
}

function buildGpt2Config([hidden, layers, heads, , , , vocabulary, context]: readonly number[]): JsonObject {
  return {
    model_type: "gpt2",
    n_embd: hidden,
    n_layer: layers,
    n_head: heads,
    n_positions: context,
    vocab_size: vocabulary,
  };
}

function buildConfig(modelType: string, sizes: readonly number[], isTied: boolean): JsonObject {
  const [hidden, layers, heads, keyValueHeads, headDim, intermediate, vocabulary, context] = sizes;
  return {
    model_type: modelType,
    hidden_size: hidden,
    num_hidden_layers: layers,
    num_attention_heads: heads,
    num_key_value_heads: keyValueHeads,
    head_dim: headDim,
    intermediate_size: intermediate,
    vocab_size: vocabulary,
    max_position_embeddings: context,
    tie_word_embeddings: isTied,
    ...(modelType === "granitemoehybrid" && {
      num_local_experts: 0,
      shared_intermediate_size: intermediate,
      layer_types: Array<string>(layers).fill("attention"),
      position_embedding_type: "rope",
    }),
  };
}

export const modelList: readonly ModelEntry[] = TABLE.trim().split("\n").map(parseRow);
