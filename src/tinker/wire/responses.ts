import * as z from "zod";

/** Responses of the Tinker API in JSON, as far as clients read them. Unknown fields are ignored. */

const text = z.string();
const count = z.int().min(0);

/** Response to a request whose result is retrieved later. */
export const untypedFuture = z.object({
  request_id: text,
  model_id: text.nullish(),
  /** One for each sample; only of asample, and not of every server. */
  sample_sequence_ids: z.array(text).nullish(),
});

/** The result is not there yet. */
export const tryAgain = z.object({
  type: z.literal("try_again"),
  request_id: text.nullish(),
  queue_state: text.nullish(),
  queue_state_reason: text.nullish(),
});

/** The result is there, but large: it is retrieved with `allow_metadata_only` false. */
export const completeMetadata = z.object({
  status: z.literal("complete_metadata"),
  response_payload_size: count.nullish(),
});

/** The request failed. */
export const requestFailed = z.object({ error: text, category: text.catch("unknown").default("unknown") });

export const clientConfig = z.object({
  parallel_fwdbwd_chunks: z.boolean().default(true),
  fwdbwd_max_chunk_len: z.int().min(1).default(1024),
  fwdbwd_max_chunk_bytes_count: z.int().min(1).default(5_000_000),
  sample_max_concurrent_requests: z.int().min(1).default(2000),
  sample_use_retrieve_futures: z.boolean().default(false),
  pjwt_auth_enabled: z.boolean().default(false),
});

export const serverCapabilities = z.object({
  supported_models: z.array(
    z.object({
      model_name: text.nullish(),
      max_context_length: count.nullish(),
      trainable: z.boolean().nullish(),
      sampleable: z.boolean().nullish(),
    }),
  ),
});

export const createSessionResponse = z.object({
  session_id: text,
  info_message: text.nullish(),
  warning_message: text.nullish(),
  error_message: text.nullish(),
});

export const createModelResponse = z.object({ model_id: text });

export const getInfoResponse = z.object({
  model_id: text,
  model_data: z.object({ arch: text.nullish(), model_name: text.nullish(), tokenizer_id: text.nullish() }),
  is_lora: z.boolean().nullish(),
  lora_rank: count.nullish(),
  model_name: text.nullish(),
});

export const optimStepResponse = z.object({ metrics: z.record(text, z.number()).nullish() });

export const savedWeights = z.object({ path: text.nullish(), sampling_session_id: text.nullish() });

export const loadWeightsResponse = z.object({ path: text.nullish(), model_id: text.nullish() });

export const createSamplingSessionResponse = z.object({ sampling_session_id: text });

export const getSamplerResponse = z.object({ sampler_id: text, base_model: text, model_path: text.nullish() });

const checkpointInfo = z.object({
  checkpoint_id: text,
  checkpoint_type: text,
  time: text,
  tinker_path: text,
  size_bytes: count.nullish(),
  user_metadata: z.record(text, text).nullish(),
  expires_at: text.nullish(),
});

export const checkpointList = z.object({ checkpoints: z.array(checkpointInfo) });

export const weightsInfo = z.object({
  base_model: text,
  is_lora: z.boolean(),
  lora_rank: count.nullish(),
  train_unembed: z.boolean().nullish(),
  train_mlp: z.boolean().nullish(),
  train_attn: z.boolean().nullish(),
});

export const externalWeightsUrls = z.object({ urls: z.record(text, text), expires: text.nullish() });
