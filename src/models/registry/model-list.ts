import type { JsonObject } from "../files/json-file.js";
import type { ModelEntry } from "./model-entry.js";

/** Sizes of a network. */
interface NetworkSizes {
  readonly hidden: number;
  readonly layers: number;
  readonly heads: number;
  readonly keyValueHeads?: number;
  readonly headDim?: number;
  readonly intermediate: number;
  readonly vocabulary: number;
  readonly context: number;
  /** Whether the output matrix is tied to the embedding. */
  readonly tied?: boolean;
}

function buildConfig(modelType: string, sizes: NetworkSizes): JsonObject {
  const { hidden, layers, heads, keyValueHeads = heads, intermediate, vocabulary, context, tied = true } = sizes;
  return {
    model_type: modelType,
    hidden_size: hidden,
    num_hidden_layers: layers,
    num_attention_heads: heads,
    num_key_value_heads: keyValueHeads,
    head_dim: sizes.headDim ?? hidden / heads,
    intermediate_size: intermediate,
    vocab_size: vocabulary,
    max_position_embeddings: context,
    tie_word_embeddings: tied,
  };
}

const gpt2 = (hidden: number, layers: number, heads: number): JsonObject => ({
  model_type: "gpt2",
  n_embd: hidden,
  n_layer: layers,
  n_head: heads,
  n_positions: 1024,
  vocab_size: 50_257,
});

/** SmolLM and SmolLM2 differ only in their context length. */
const smolLmConfigs = (context: number) => ({
  small: buildConfig("llama", {
    hidden: 576,
    layers: 30,
    heads: 9,
    keyValueHeads: 3,
    intermediate: 1536,
    vocabulary: 49_152,
    context,
  }),
  medium: buildConfig("llama", {
    hidden: 960,
    layers: 32,
    heads: 15,
    keyValueHeads: 5,
    intermediate: 2560,
    vocabulary: 49_152,
    context,
  }),
  large: buildConfig("llama", { hidden: 2048, layers: 24, heads: 32, intermediate: 8192, vocabulary: 49_152, context }),
});
const smolLm1 = smolLmConfigs(2048);
const smolLm2 = smolLmConfigs(8192);

const qwen2 = (sizes: Omit<NetworkSizes, "vocabulary" | "context">) =>
  buildConfig("qwen2", { ...sizes, vocabulary: 151_936, context: 32_768 });
const qwen2Half = qwen2({ hidden: 896, layers: 24, heads: 14, keyValueHeads: 2, intermediate: 4864 });
const qwen2OneAndHalf = qwen2({ hidden: 1536, layers: 28, heads: 12, keyValueHeads: 2, intermediate: 8960 });

const qwen3 = (sizes: Omit<NetworkSizes, "vocabulary" | "context" | "keyValueHeads" | "headDim">) =>
  buildConfig("qwen3", { ...sizes, keyValueHeads: 8, headDim: 128, vocabulary: 151_936, context: 40_960 });

const llama3 = (sizes: Omit<NetworkSizes, "vocabulary" | "context" | "keyValueHeads">) =>
  buildConfig("llama", { ...sizes, keyValueHeads: 8, vocabulary: 128_256, context: 131_072 });

const gemma3 = (sizes: Omit<NetworkSizes, "heads" | "keyValueHeads" | "headDim" | "vocabulary" | "context">) =>
  buildConfig("gemma3_text", {
    ...sizes,
    heads: 4,
    keyValueHeads: 1,
    headDim: 256,
    vocabulary: 262_144,
    context: 32_768,
  });

const llama2 = buildConfig("llama", {
  hidden: 4096,
  layers: 32,
  heads: 32,
  intermediate: 11_008,
  vocabulary: 32_000,
  context: 4096,
  tied: false,
});

/** An empty reasoning block before the completion, as chat templates write it with thinking disabled. */
const noThinking = { completionPrefix: "<think>\n\n</think>\n\n" };
const smolLm3NoThinking = { completionPrefix: "<think>\n\n</think>\n" };
const THINKING_NOTE = "reasoning model; its defaults start completions after an empty reasoning block";
const BASE_NOTE = "base model without a chat template; uses a plain transcript, completions end at the line break";
const NO_SYSTEM_NOTE = "no system role; the system prompt precedes the first observation";

const apache = "Apache-2.0";
const mit = "MIT";

/**
 * Registered models, grouped by family and ordered by size: those named by LlamaGym and its
 * successors, and current small ones. Networks follow their config.json, parameter counts their
 * model cards.
 */
export const modelList: readonly ModelEntry[] = [
  { id: "HuggingFaceTB/SmolLM-135M-Instruct", parameters: 135e6, license: apache, config: smolLm1.small },
  { id: "HuggingFaceTB/SmolLM-360M-Instruct", parameters: 362e6, license: apache, config: smolLm1.medium },
  { id: "HuggingFaceTB/SmolLM-1.7B-Instruct", parameters: 1711e6, license: apache, config: smolLm1.large },
  { id: "HuggingFaceTB/SmolLM2-135M-Instruct", parameters: 135e6, license: apache, config: smolLm2.small },
  { id: "HuggingFaceTB/SmolLM2-360M-Instruct", parameters: 362e6, license: apache, config: smolLm2.medium },
  { id: "HuggingFaceTB/SmolLM2-1.7B-Instruct", parameters: 1711e6, license: apache, config: smolLm2.large },
  {
    id: "HuggingFaceTB/SmolLM3-3B",
    parameters: 3075e6,
    license: apache,
    config: buildConfig("smollm3", {
      hidden: 2048,
      layers: 36,
      heads: 16,
      keyValueHeads: 4,
      intermediate: 11_008,
      vocabulary: 128_256,
      context: 65_536,
    }),
    note: THINKING_NOTE,
    defaults: smolLm3NoThinking,
  },
  { id: "Qwen/Qwen2-0.5B-Instruct", parameters: 494e6, license: apache, config: qwen2Half },
  { id: "Qwen/Qwen2-1.5B-Instruct", parameters: 1544e6, license: apache, config: qwen2OneAndHalf },
  { id: "Qwen/Qwen2.5-0.5B-Instruct", parameters: 494e6, license: apache, config: qwen2Half },
  { id: "Qwen/Qwen2.5-1.5B-Instruct", parameters: 1544e6, license: apache, config: qwen2OneAndHalf },
  {
    id: "Qwen/Qwen2.5-3B-Instruct",
    parameters: 3086e6,
    license: "Qwen research",
    config: qwen2({ hidden: 2048, layers: 36, heads: 16, keyValueHeads: 2, intermediate: 11_008 }),
  },
  {
    id: "Qwen/Qwen3-0.6B",
    parameters: 596e6,
    license: apache,
    config: qwen3({ hidden: 1024, layers: 28, heads: 16, intermediate: 3072 }),
    note: THINKING_NOTE,
    defaults: noThinking,
  },
  {
    id: "Qwen/Qwen3-1.7B",
    parameters: 1721e6,
    license: apache,
    config: qwen3({ hidden: 2048, layers: 28, heads: 16, intermediate: 6144 }),
    note: THINKING_NOTE,
    defaults: noThinking,
  },
  {
    id: "Qwen/Qwen3-4B",
    parameters: 4022e6,
    license: apache,
    config: qwen3({ hidden: 2560, layers: 36, heads: 32, intermediate: 9728 }),
    note: THINKING_NOTE,
    defaults: noThinking,
  },
  {
    id: "Qwen/Qwen3-4B-Instruct-2507",
    parameters: 4022e6,
    license: apache,
    config: { ...qwen3({ hidden: 2560, layers: 36, heads: 32, intermediate: 9728 }), max_position_embeddings: 262_144 },
  },
  {
    id: "TinyLlama/TinyLlama-1.1B-Chat-v1.0",
    parameters: 1100e6,
    license: apache,
    config: buildConfig("llama", {
      hidden: 2048,
      layers: 22,
      heads: 32,
      keyValueHeads: 4,
      intermediate: 5632,
      vocabulary: 32_000,
      context: 2048,
      tied: false,
    }),
  },
  {
    id: "meta-llama/Llama-3.2-1B-Instruct",
    parameters: 1236e6,
    license: "Llama 3.2",
    config: llama3({ hidden: 2048, layers: 16, heads: 32, intermediate: 8192 }),
    gated: true,
  },
  {
    id: "meta-llama/Llama-3.2-3B-Instruct",
    parameters: 3213e6,
    license: "Llama 3.2",
    config: llama3({ hidden: 3072, layers: 28, heads: 24, intermediate: 8192 }),
    gated: true,
  },
  {
    id: "meta-llama/Llama-2-7b-hf",
    parameters: 6738e6,
    license: "Llama 2",
    config: llama2,
    gated: true,
    note: BASE_NOTE,
    kind: "base",
  },
  { id: "meta-llama/Llama-2-7b-chat-hf", parameters: 6738e6, license: "Llama 2", config: llama2, gated: true },
  {
    id: "meta-llama/Llama-3.1-8B-Instruct",
    parameters: 8030e6,
    license: "Llama 3.1",
    config: llama3({ hidden: 4096, layers: 32, heads: 32, intermediate: 14_336, tied: false }),
    gated: true,
  },
  {
    id: "google/gemma-3-270m-it",
    parameters: 268e6,
    license: "Gemma",
    config: gemma3({ hidden: 640, layers: 18, intermediate: 2048 }),
    gated: true,
    note: NO_SYSTEM_NOTE,
  },
  {
    id: "google/gemma-3-1b-it",
    parameters: 1000e6,
    license: "Gemma",
    config: gemma3({ hidden: 1152, layers: 26, intermediate: 6912 }),
    gated: true,
    note: NO_SYSTEM_NOTE,
  },
  {
    id: "microsoft/phi-1_5",
    parameters: 1418e6,
    license: mit,
    config: buildConfig("phi", {
      hidden: 2048,
      layers: 24,
      heads: 32,
      intermediate: 8192,
      vocabulary: 51_200,
      context: 2048,
      tied: false,
    }),
    kind: "base",
    note: BASE_NOTE,
  },
  {
    id: "microsoft/phi-2",
    parameters: 2780e6,
    license: mit,
    config: buildConfig("phi", {
      hidden: 2560,
      layers: 32,
      heads: 32,
      intermediate: 10_240,
      vocabulary: 51_200,
      context: 2048,
      tied: false,
    }),
    kind: "base",
    note: BASE_NOTE,
  },
  {
    id: "microsoft/Phi-3-mini-4k-instruct",
    parameters: 3821e6,
    license: mit,
    config: buildConfig("phi3", {
      hidden: 3072,
      layers: 32,
      heads: 32,
      intermediate: 8192,
      vocabulary: 32_064,
      context: 4096,
      tied: false,
    }),
  },
  {
    id: "microsoft/Phi-4-mini-instruct",
    parameters: 3836e6,
    license: mit,
    config: buildConfig("phi3", {
      hidden: 3072,
      layers: 32,
      heads: 24,
      keyValueHeads: 8,
      intermediate: 8192,
      vocabulary: 200_064,
      context: 131_072,
    }),
  },
  {
    id: "mistralai/Mistral-7B-Instruct-v0.3",
    parameters: 7248e6,
    license: apache,
    config: buildConfig("mistral", {
      hidden: 4096,
      layers: 32,
      heads: 32,
      keyValueHeads: 8,
      intermediate: 14_336,
      vocabulary: 32_768,
      context: 32_768,
      tied: false,
    }),
  },
  {
    id: "distilbert/distilgpt2",
    parameters: 82e6,
    license: apache,
    config: gpt2(768, 6, 12),
    kind: "base",
    note: BASE_NOTE,
  },
  {
    id: "openai-community/gpt2",
    parameters: 124e6,
    license: mit,
    config: gpt2(768, 12, 12),
    kind: "base",
    note: BASE_NOTE,
  },
  {
    id: "openai-community/gpt2-medium",
    parameters: 355e6,
    license: mit,
    config: gpt2(1024, 24, 16),
    kind: "base",
    note: BASE_NOTE,
  },
  {
    id: "openai-community/gpt2-large",
    parameters: 774e6,
    license: mit,
    config: gpt2(1280, 36, 20),
    kind: "base",
    note: BASE_NOTE,
  },
];
