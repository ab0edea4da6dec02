import type * as z from "zod";
import { invalidArgument, LlamaGymError } from "../../core/errors.js";
import { RandomStream } from "../../core/random/random-stream.js";
import { Completer, TEMPERATURE_LIMITS, type LanguageModel } from "../../generation/index.js";
import { checkTokens } from "../../models/graphs/index.js";
import {
  type requests,
  type SampledSequence,
  type SampleResponse,
  type TokenLogprob,
  checkTensor,
  type WireTensor,
} from "../../tinker/wire/index.js";
import { clientClosedError } from "../server/request-error.js";
import type { PromptScores, PromptToken } from "./prompt-scores.js";
import type { LoadedPolicy } from "./snapshots.js";

export type SampleRequestBody = z.infer<typeof requests.sampleRequest>;

/** Largest numbers of samples of a request and of tokens per position. */
const MAX_SAMPLES = 1024;
const MAX_TOPK = 1024;
/** Alternative tokens that may be drawn for a prompt: each position takes a pass. */
const MAX_ALT_POSITIONS = 4096;

/** A request with its prompt checked. */
export interface CheckedSample {
  readonly prompt: readonly number[];
  readonly maxNewTokens: number;
  /** First position whose log-probability is wanted. */
  readonly firstScored: number;
  readonly targets: WireTensor | undefined;
  readonly body: SampleRequestBody;
}

/** Checks a request. @throws INVALID_ARGUMENT, CONTEXT_OVERFLOW */
export function checkSample(
  body: SampleRequestBody,
  { causalLM: { config }, hasTokenizer }: LanguageModel,
): CheckedSample {
  const prompt = body.prompt.chunks.flatMap(({ type, tokens }) => {
    if (type !== "encoded_text" || tokens == null)
      throw invalidArgument(`The prompt has a part of type ${type}; only encoded_text is possible.`);
    return tokens;
  });
  if (prompt.length === 0) throw invalidArgument("The prompt is empty; it must have at least one token.");
  checkTokens(config, prompt);
  if (prompt.length > config.maxPositions)
    throw new LlamaGymError(
      "CONTEXT_OVERFLOW",
      `The prompt has ${prompt.length} tokens; the model's context has ${config.maxPositions}.`,
    );
  if (body.num_samples > MAX_SAMPLES)
    throw invalidArgument(`num_samples must be at most ${MAX_SAMPLES}, got ${body.num_samples}.`);
  for (const name of ["topk_prompt_logprobs", "topk_sample_logprobs", "prompt_alt_tokens_k"] as const)
    if (body[name] > MAX_TOPK) throw invalidArgument(`${name} must be at most ${MAX_TOPK}, got ${body[name]}.`);
  const { stop, max_tokens: maxTokens } = body.sampling_params;
  if (listStops(stop).strings.length > 0 && !hasTokenizer)
    throw invalidArgument("The model has no tokenizer, so that `stop` must be token ids.");
  const { prompt_logprobs_last_n: lastN } = body;
  if (lastN != null && lastN > prompt.length - 1)
    throw invalidArgument(`prompt_logprobs_last_n must be at most ${prompt.length - 1} for this prompt, got ${lastN}.`);
  if (body.prompt_alt_tokens_k > 0 && prompt.length > MAX_ALT_POSITIONS)
    throw invalidArgument(`prompt_alt_tokens_k needs a prompt of at most ${MAX_ALT_POSITIONS} tokens.`);
  return {
    prompt,
    maxNewTokens: Math.min(maxTokens ?? Infinity, config.maxPositions - prompt.length),
    firstScored: lastN == null ? 1 : prompt.length - lastN,
    targets: readTargets(body, prompt.length, config),
    body,
  };
}

function readTargets(
  { target_prompt_logprobs: target }: SampleRequestBody,
  promptLength: number,
  config: { readonly vocabSize: number },
): WireTensor | undefined {
  if (target == null) return undefined;
  const { data, dtype, shape, sparse_crow_indices: crow, sparse_col_indices: col } = target;
  const sparse = crow == null || col == null ? undefined : { crow, col };
  const tensor = checkTensor({ dtype, shape: shape ?? [data.length], data, sparse });
  if (tensor.shape.length !== 2 || tensor.shape[0] !== promptLength - 1)
    throw invalidArgument(
      `target_prompt_logprobs must have the shape [${promptLength - 1}, K], got [${tensor.shape.join(", ")}].`,
    );
  const invalid = data.find((token) => !Number.isInteger(token) || token < -1 || token >= config.vocabSize);
  if (invalid !== undefined)
    throw invalidArgument(
      `target_prompt_logprobs must be tokens below ${config.vocabSize}, or -1 for none, got ${invalid}.`,
    );
  return tensor;
}

/** Samples completions, and scores the prompt as the request asks for. */
export async function runSample(
  request: CheckedSample,
  { policy, model, scores, signal }: SampleContext,
): Promise<SampleResponse> {
  const { body, prompt, firstScored } = request;
  const positions = Array.from({ length: prompt.length - firstScored }, (_, i) => firstScored + i);
  const wanted =
    body.prompt_logprobs === true ? positions.map((position) => ({ position, token: prompt[position] })) : [];
  const [completions, promptLogProbs, topk, targetPromptLogprobs, promptAltTokens] = await Promise.all([
    sampleCompletions(request, policy, model, signal),
    scores.score(policy, prompt, wanted),
    body.topk_prompt_logprobs === 0 ? undefined : scoreTopk(request, policy),
    request.targets && scoreTargets(request.targets, (tokens) => scores.score(policy, prompt, tokens)),
    body.prompt_alt_tokens_k === 0 ? undefined : drawAlternatives(request, policy, scores),
  ]);
  const promptLogprobs =
    body.prompt_logprobs === true
      ? [...Array.from({ length: firstScored }, () => undefined), ...promptLogProbs]
      : undefined;
  return { ...completions, promptLogprobs, topkPromptLogprobs: topk, targetPromptLogprobs, promptAltTokens };
}

/** What a request is run with. */
export interface SampleContext {
  readonly policy: LoadedPolicy;
  readonly model: LanguageModel;
  readonly scores: PromptScores;
  readonly signal: AbortSignal;
}

async function sampleCompletions(
  { body, prompt, maxNewTokens }: CheckedSample,
  { sampler }: LoadedPolicy,
  model: LanguageModel,
  signal: AbortSignal,
): Promise<Pick<SampleResponse, "sequences" | "promptCacheHitTokens">> {
  const { num_samples: count, topk_sample_logprobs: topk, sampling_params: params } = body;
  // A prompt that fills the context is only scored.
  if (maxNewTokens === 0) {
    const empty = { stopReason: "length", tokens: [], logprobs: [] } as const;
    return { sequences: Array.from({ length: count }, () => empty), promptCacheHitTokens: 0 };
  }
  const { tokens, strings } = listStops(params.stop);
  const completer = new Completer(sampler, model.hasTokenizer && strings.length > 0 ? model.tokenizer : undefined);
  const completions = await Promise.all(
    Array.from({ length: count }, (_, i) =>
      completer.complete({
        prompt,
        sampling: {
          temperature: getTemperature(params.temperature),
          topK: Math.max(0, params.top_k),
          topP: params.top_p,
          minP: 0,
          repetitionPenalty: 1,
        },
        maxNewTokens,
        random: params.seed == null ? new RandomStream() : new RandomStream(params.seed, [i]),
        stop: { tokens: new Set([...model.endTokenIds, ...tokens]), strings },
        isContinuation: true,
        ...(topk > 0 && { topLogProbs: topk }),
        signal,
      }),
    ),
  );
  if (completions.some(({ finishReason }) => finishReason === "aborted")) throw clientClosedError();
  return {
    promptCacheHitTokens: Math.min(...completions.map(({ cachedTokens }) => cachedTokens)),
    sequences: completions.map(({ finishReason, tokens: sampled, rawLogProbs, topLogProbs }): SampledSequence => ({
      stopReason: finishReason === "length" ? "length" : "stop",
      tokens: sampled,
      logprobs: rawLogProbs,
      ...(topLogProbs !== undefined && { topkLogprobs: topLogProbs.map(toWire) }),
    })),
  };
}

/** A temperature below that of the samplers is 0: the most probable token. */
const getTemperature = (temperature: number): number => (temperature < TEMPERATURE_LIMITS.min ? 0 : temperature);

const toWire = (row: readonly { readonly token: number; readonly logProb: number }[]): readonly TokenLogprob[] =>
  row.map(({ token, logProb }) => ({ token, logprob: logProb }));

function listStops(stop: SampleRequestBody["sampling_params"]["stop"]): { tokens: number[]; strings: string[] } {
  const given = stop == null ? [] : typeof stop === "string" ? [stop] : stop;
  return {
    tokens: given.filter((each): each is number => typeof each === "number"),
    strings: given.filter((each): each is string => typeof each === "string" && each !== ""),
  };
}

async function scoreTopk(
  { prompt, firstScored, body }: CheckedSample,
  { sampler }: LoadedPolicy,
): Promise<(readonly TokenLogprob[])[]> {
  const { topLogProbs } = await sampler.scoreTokens(
    prompt.slice(0, firstScored),
    prompt.slice(firstScored),
    body.topk_prompt_logprobs,
  );
  return [...Array.from({ length: firstScored }, () => []), ...topLogProbs.map(toWire)];
}

/** Scores given tokens in place of those of the prompt; a cell of -1 gets 0. */
async function scoreTargets(
  targets: WireTensor,
  score: (wanted: readonly PromptToken[]) => Promise<Float32Array>,
): Promise<WireTensor> {
  const rows = listRows(targets);
  const cells = Array.from(targets.data, (token, i) => ({ token, position: 1 + rows[i] }));
  const wanted = cells.filter(({ token }) => token >= 0);
  const logProbs = await score(wanted);
  let next = 0;
  const data = Float32Array.from(cells, (cell) => (cell.token < 0 ? 0 : logProbs[next++]));
  return { ...targets, dtype: "float32", data };
}

/** Returns the row of each value. */
function listRows({ sparse, shape, data }: WireTensor): number[] {
  if (sparse === undefined) return Array.from(data, (_, i) => Math.floor(i / shape[1]));
  const counts = sparse.crow.slice(1).map((end, row) => end - sparse.crow[row]);
  return counts.flatMap((count, row) => Array.from({ length: count }, () => row));
}

/**
 * Draws tokens in place of each token of the prompt from the second on, at the request's
 * temperature.
 */
async function drawAlternatives(
  { prompt, body }: CheckedSample,
  policy: LoadedPolicy,
  scores: PromptScores,
): Promise<{ tokens: WireTensor; logprobs: WireTensor }> {
  const { prompt_alt_tokens_k: k, sampling_params: params } = body;
  const shape = [prompt.length - 1, k];
  const wanted: PromptToken[] = [];
  for (let position = 1; position < prompt.length; position++) {
    const random = params.seed == null ? new RandomStream() : new RandomStream(params.seed, [position, k]);
    const drawn = await Promise.all(
      Array.from({ length: k }, () =>
        policy.sampler.sample({
          prompt: prompt.slice(0, position),
          sampling: {
            temperature: getTemperature(params.temperature),
            topK: 0,
            topP: 1,
            minP: 0,
            repetitionPenalty: 1,
          },
          maxNewTokens: 1,
          random: () => random.random(),
          stopTokens: new Set(),
        }),
      ),
    );
    for (const { tokens } of drawn) wanted.push({ position, token: tokens[0] });
  }
  const logProbs = await scores.score(policy, prompt, wanted);
  return {
    tokens: { dtype: "int32", shape, data: wanted.map(({ token }) => token) },
    logprobs: { dtype: "float32", shape, data: logProbs },
  };
}
