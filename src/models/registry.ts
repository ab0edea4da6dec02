/** A model on the Hugging Face hub that this library is meant for: small, and of a supported architecture. */
export interface RegisteredModel {
  /** The hub id. */
  readonly id: string;
  /** config.json's model_type. */
  readonly modelType: string;
  readonly parameters: number;
  /** Tokens that prompt and reply may have together. */
  readonly context: number;
  /** "chat" follows instructions; "base" goes on with a text. */
  readonly kind: "chat" | "base";
  /** Its terms must be accepted on the hub before its files can be had. */
  readonly gated: boolean;
}

const chat = (id: string, modelType: string, parameters: number, context: number, gated = false): RegisteredModel => ({
  id,
  modelType,
  parameters,
  context,
  kind: "chat",
  gated,
});

const base = (id: string, modelType: string, parameters: number, context: number): RegisteredModel => ({
  ...chat(id, modelType, parameters, context),
  kind: "base",
});

/** Smallest first. Sizes and contexts are those of the model cards and configurations. */
export const registeredModels: readonly RegisteredModel[] = [
  base("openai-community/gpt2", "gpt2", 124e6, 1024),
  chat("HuggingFaceTB/SmolLM2-135M-Instruct", "llama", 135e6, 8192),
  chat("google/gemma-3-270m-it", "gemma3_text", 268e6, 32768, true),
  base("openai-community/gpt2-medium", "gpt2", 355e6, 1024),
  chat("HuggingFaceTB/SmolLM2-360M-Instruct", "llama", 362e6, 8192),
  chat("Qwen/Qwen2.5-0.5B-Instruct", "qwen2", 494e6, 32768),
  chat("Qwen/Qwen3-0.6B", "qwen3", 596e6, 40960),
  chat("google/gemma-3-1b-it", "gemma3_text", 1000e6, 32768, true),
  chat("TinyLlama/TinyLlama-1.1B-Chat-v1.0", "llama", 1100e6, 2048),
  chat("meta-llama/Llama-3.2-1B-Instruct", "llama", 1236e6, 131072, true),
  base("microsoft/phi-1_5", "phi", 1418e6, 2048),
  chat("Qwen/Qwen2.5-1.5B-Instruct", "qwen2", 1544e6, 32768),
  chat("HuggingFaceTB/SmolLM2-1.7B-Instruct", "llama", 1711e6, 8192),
  chat("Qwen/Qwen3-1.7B", "qwen3", 1721e6, 40960),
  base("microsoft/phi-2", "phi", 2780e6, 2048),
  chat("HuggingFaceTB/SmolLM3-3B", "smollm3", 3075e6, 65536),
  chat("meta-llama/Llama-3.2-3B-Instruct", "llama", 3213e6, 131072, true),
  chat("microsoft/Phi-3-mini-4k-instruct", "phi3", 3821e6, 4096),
  chat("mistralai/Mistral-7B-Instruct-v0.3", "mistral", 7248e6, 32768),
];

/** Bytes of a float32 weight, with what one reply needs beside the weights. */
const BYTES_PER_PARAMETER = 4 * 1.5;

/** About how many bytes of memory generating with a model takes. */
export function runMemory({ parameters }: RegisteredModel): number {
  return parameters * BYTES_PER_PARAMETER;
}
