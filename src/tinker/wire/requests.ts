import * as z from "zod";

/**
 * Requests of the Tinker API in JSON. Unknown fields are ignored, because each release of the SDK
 * adds some.
 */

/** Longest text of a request, such as an identifier or a path. */
const MAX_TEXT = 1024;
const text = z.string().max(MAX_TEXT);
const integer = z.int();
const count = z.int().min(0);
const metadata = z.record(z.string().max(MAX_TEXT), z.unknown()).nullish();
const ttl = z.int().min(1).nullish();

export const createSessionRequest = z.object({
  tags: z.array(text).max(64).default([]),
  user_metadata: metadata,
  sdk_version: text.nullish(),
  project_id: text.nullish(),
});

export const sessionRequest = z.object({ session_id: text });

export const loraConfig = z.object({
  rank: z.int().min(1).default(32),
  seed: integer.nullish(),
  train_unembed: z.boolean().default(true),
  train_mlp: z.boolean().default(true),
  train_attn: z.boolean().default(true),
});

const optimizerConfig = z.object({ type: text }).nullish();

export const createModelRequest = z.object({
  session_id: text,
  model_seq_id: count,
  base_model: text,
  lora_config: loraConfig.nullish(),
  optimizer_config: optimizerConfig,
  user_metadata: metadata,
});

export const modelRequest = z.object({ model_id: text });

const adamParams = z.object({
  learning_rate: z.number().min(0).default(1e-4),
  beta1: z.number().min(0).lt(1).default(0.9),
  beta2: z.number().min(0).lt(1).default(0.95),
  eps: z.number().min(0).default(1e-12),
  weight_decay: z.number().min(0).default(0),
  /** 0 disables clipping. */
  grad_clip_norm: z.number().min(0).default(0),
});

export const optimStepRequest = z.object({
  model_id: text,
  seq_id: integer.nullish(),
  adam_params: adamParams.nullish(),
  optimizer_params: z.looseObject({ type: text }).nullish(),
});

export const saveWeightsRequest = z.object({
  model_id: text,
  seq_id: integer.nullish(),
  path: text.nullish(),
  ttl_seconds: ttl,
  overwrite: z.boolean().default(false),
  user_metadata: metadata,
});

export const saveWeightsForSamplerRequest = z.object({
  model_id: text,
  seq_id: integer.nullish(),
  path: text.nullish(),
  sampling_session_seq_id: count.nullish(),
  /** "inflight" replaces what all sampling sessions of this kind of the model sample from. */
  kind: z.enum(["snapshot", "inflight"]).default("snapshot"),
  ttl_seconds: ttl,
  user_metadata: metadata,
});

export const loadWeightsRequest = z.object({
  path: text,
  optimizer: z.boolean().default(false),
  model_id: text.nullish(),
  seq_id: integer.nullish(),
  session_id: text.nullish(),
  model_seq_id: count.nullish(),
  base_model: text.nullish(),
  optimizer_config: optimizerConfig,
  user_metadata: metadata,
});

export const createSamplingSessionRequest = z.object({
  session_id: text,
  sampling_session_seq_id: count,
  model_path: text.nullish(),
  base_model: text.nullish(),
});

export const samplingSessionRequest = z.object({ sampling_session_id: text });

/** A tensor in JSON. */
const tensorData = z.object({
  data: z.array(z.number()),
  dtype: z.enum(["int64", "float32"]),
  shape: z.array(count).max(8).nullish(),
  sparse_crow_indices: z.array(count).nullish(),
  sparse_col_indices: z.array(count).nullish(),
});

const samplingParams = z.object({
  max_tokens: z.int().min(1).nullish(),
  seed: count.nullish(),
  stop: z.union([text, z.array(text).max(64), z.array(count).max(2 ** 20)]).nullish(),
  temperature: z.number().min(0).max(100).default(1),
  top_k: z.int().min(-1).default(-1),
  top_p: z.number().gt(0).max(1).default(1),
});

export const sampleRequest = z.object({
  sampling_session_id: text.nullish(),
  seq_id: count.nullish(),
  base_model: text.nullish(),
  model_path: text.nullish(),
  num_samples: z.int().min(1).default(1),
  prompt: z.object({ chunks: z.array(z.looseObject({ type: text, tokens: z.array(count).nullish() })).max(4096) }),
  sampling_params: samplingParams,
  prompt_logprobs: z.boolean().nullish(),
  topk_prompt_logprobs: count.default(0),
  topk_sample_logprobs: count.default(0),
  target_prompt_logprobs: tensorData.nullish(),
  prompt_alt_tokens_k: count.default(0),
  prompt_logprobs_last_n: z.int().min(1).nullish(),
  record_stability_info: z.boolean().nullish(),
});

export const retrieveFutureRequest = z.object({ request_id: text, allow_metadata_only: z.boolean().nullish() });

export const retrieveFuturesRequest = z.object({
  target: z.object({
    type: z.literal("sampling_session"),
    sampling_session_id: text,
    cloned_sampler_id: count.nullish(),
  }),
  prev_cursor: count.nullish(),
  /** Seconds to wait for a completion. */
  timeout: z.number().min(0).nullish(),
  retrieved_request_ids: z.array(text).max(65_536).default([]),
});

export const weightsInfoRequest = z.object({ tinker_path: text });

export const ttlRequest = z.object({ ttl_seconds: ttl });

export const copyWeightsRequest = z.object({
  source_path: text,
  session_id: text.nullish(),
  model_seq_id: count.nullish(),
  ttl_seconds: ttl,
});
