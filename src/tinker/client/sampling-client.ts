import { createSamplingSessionResponse } from "../wire/responses.js";
import { decodeSampleResponse, type SampleResponse } from "../wire/sample-response.js";
import { ResultGoneError, type ServiceSession } from "./service-session.js";
import { ServiceError } from "./service-connection.js";
import type { TokenUsage } from "./token-usage.js";

/** Parameters of a sample. */
export interface SampleParams {
  readonly maxTokens: number;
  readonly seed?: number;
  readonly stop?: readonly number[] | readonly string[];
  readonly temperature: number;
  /** -1 for all. */
  readonly topK: number;
  readonly topP: number;
}

/** A request for samples. */
export interface SamplingRequest {
  readonly prompt: readonly number[];
  readonly count?: number;
  readonly params: SampleParams;
  /** Number of tokens at the prompt's end whose log-probabilities are computed. */
  readonly scoredTokens?: number;
  /** Number of most probable tokens at each token of the prompt, and of each sample. */
  readonly topkPrompt?: number;
  readonly topkSample?: number;
}

/** Samples of a service that are computed at once. */
const MAX_CONCURRENT = 64;
/** Times that a sample whose result the service dropped is requested again. */
const MAX_RESUBMITS = 5;

/**
 * Samples from weights that do not change: a snapshot of a trained model, saved weights, or a base
 * model.
 */
export class SamplingClient {
  private nextSeqId = 0;
  private active = 0;
  private replacement: Promise<string> | undefined;
  private readonly waiting: (() => void)[] = [];

  constructor(
    private readonly session: ServiceSession,
    private samplingSessionId: string,
    private readonly usage: TokenUsage,
    /** Opens another sampling session on the same weights where the service refuses this one. */
    private readonly replace?: () => Promise<string>,
  ) {}

  /** Opens a sampling session on saved weights or a base model. */
  static async open(
    session: ServiceSession,
    seqId: number,
    source: { readonly modelPath: string } | { readonly baseModel: string },
    usage: TokenUsage,
    replace?: () => Promise<string>,
  ): Promise<SamplingClient> {
    const { sampling_session_id: id } = await session.call(
      {
        path: "create_sampling_session",
        json: {
          session_id: session.id,
          sampling_session_seq_id: seqId,
          ...("modelPath" in source ? { model_path: source.modelPath } : { base_model: source.baseModel }),
          type: "create_sampling_session",
        },
      },
      createSamplingSessionResponse,
    );
    return new SamplingClient(session, id, usage, replace);
  }

  /** Samples, and scores the prompt where requested. @throws SERVICE_FAILED */
  async sample(request: SamplingRequest): Promise<SampleResponse> {
    if (this.active >= MAX_CONCURRENT) await new Promise<void>((resolve) => this.waiting.push(resolve));
    this.active++;
    try {
      for (let attempt = 0; ; attempt++) {
        const { samplingSessionId: id } = this;
        try {
          return await this.request(request);
        } catch (error) {
          if (error instanceof ResultGoneError && attempt < MAX_RESUBMITS) continue;
          if (!(error instanceof ServiceError) || !(await this.useReplacement(id))) throw error;
        }
      }
    } finally {
      this.active--;
      this.waiting.shift()?.();
    }
  }

  /** Returns the log-probabilities of the last `count` tokens of a sequence. */
  async scoreLast(tokens: readonly number[], count: number): Promise<readonly number[]> {
    const params = { maxTokens: 1, temperature: 1, topK: -1, topP: 1 };
    const { promptLogprobs } = await this.sample({ prompt: tokens, params, scoredTokens: count });
    const last = promptLogprobs?.slice(-count) ?? [];
    if (last.length === count && last.every((value) => value !== undefined)) return last;
    throw new ServiceError(
      `${this.session.connection.baseUrl} does not compute the log-probabilities of prompts, which scoring needs. ` +
        "Choose a service that does, completions that are free instead of choices, and beta 0.",
      undefined,
    );
  }

  /** Returns whether there is another sampling session than one that the service refused. */
  private async useReplacement(refused: string): Promise<boolean> {
    if (this.replace === undefined) return false;
    this.replacement ??= this.replace();
    this.samplingSessionId = await this.replacement;
    return this.samplingSessionId !== refused;
  }

  private async request({
    prompt,
    count = 1,
    params,
    scoredTokens = 0,
    topkPrompt = 0,
    topkSample = 0,
  }: SamplingRequest): Promise<SampleResponse> {
    const requestId = await this.session.submit({
      path: "asample",
      headers: { "x-tinker-sampling-backpressure": "1" },
      json: {
        sampling_session_id: this.samplingSessionId,
        seq_id: this.nextSeqId++,
        num_samples: count,
        prompt: { chunks: [{ type: "encoded_text", tokens: prompt }] },
        sampling_params: {
          max_tokens: params.maxTokens,
          seed: params.seed,
          stop: params.stop?.length === 0 ? undefined : params.stop,
          temperature: params.temperature,
          top_k: params.topK,
          top_p: params.topP,
        },
        prompt_logprobs: scoredTokens > 0 || topkPrompt > 0,
        topk_prompt_logprobs: topkPrompt,
        topk_sample_logprobs: topkSample,
        ...(scoredTokens > 0 ? { prompt_logprobs_last_n: scoredTokens } : {}),
        type: "sample",
      },
    });
    const { bytes } = await this.session.retrieve(requestId, "Sample");
    if (bytes === undefined)
      throw new ServiceError("The result of asample is not protobuf, which SDK 0.25 and later need.", undefined);
    const response = decodeSampleResponse(bytes);
    const sampled = response.sequences.reduce((sum, { tokens }) => sum + tokens.length, 0);
    this.usage.add({ prefilled: prompt.length, sampled });
    return response;
  }
}
