import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { invalidArgument } from "../../core/errors.js";
import { readMessage } from "./forward-backward.js";
import { SampleResponseSchema, StopReason, TopkLogprobsSchema, type TopkLogprobs } from "./tinker_pb.js";
import { decodeNumbers, decodeTensor, encodeNumbers, encodeTensor, type WireTensor } from "./wire-tensor.js";

/** A token and its log-probability. */
export interface TokenLogprob {
  readonly token: number;
  readonly logprob: number;
}

/** A sampled completion. */
export interface SampledSequence {
  readonly stopReason: "stop" | "length";
  readonly tokens: readonly number[];
  /** Log-probability of each token. */
  readonly logprobs: readonly number[] | undefined;
  /** The most probable tokens at each token, most probable first. */
  readonly topkLogprobs?: readonly (readonly TokenLogprob[])[] | undefined;
}

/** Result of a sample. */
export interface SampleResponse {
  readonly sequences: readonly SampledSequence[];
  /**
   * Log-probability of each token of the prompt; undefined where it was not computed, as for the
   * first.
   */
  readonly promptLogprobs?: readonly (number | undefined)[] | undefined;
  /** The most probable tokens at each token of the prompt; empty where they were not computed. */
  readonly topkPromptLogprobs?: readonly (readonly TokenLogprob[])[] | undefined;
  /** Number of the prompt's tokens whose keys and values were reused. */
  readonly promptCacheHitTokens: number;
  readonly targetPromptLogprobs?: WireTensor | undefined;
  /**
   * Tokens that were drawn in place of those of the prompt from the second on, and their
   * log-probabilities.
   */
  readonly promptAltTokens?: { readonly tokens: WireTensor; readonly logprobs: WireTensor } | undefined;
}

/** Log-probability in the cells of a top-k table that have no token, which is then 0. */
const EMPTY_LOGPROB = -99999;

export function encodeSampleResponse(response: SampleResponse): Uint8Array<ArrayBuffer> {
  const { promptLogprobs, topkPromptLogprobs, targetPromptLogprobs, promptAltTokens: alt } = response;
  return toBinary(
    SampleResponseSchema,
    create(SampleResponseSchema, {
      promptCacheHitTokens: response.promptCacheHitTokens,
      sequences: response.sequences.map(({ stopReason, tokens, logprobs, topkLogprobs }) => ({
        stopReason: stopReason === "stop" ? StopReason.STOP : StopReason.LENGTH,
        tokens: encodeNumbers("int32", tokens),
        ...(logprobs !== undefined && { logprobs: encodeNumbers("float32", logprobs) }),
        ...(topkLogprobs !== undefined && { topkSampledLogprobs: encodeTopk(topkLogprobs) }),
      })),
      ...(promptLogprobs !== undefined && {
        promptLogprobs: encodeNumbers(
          "float32",
          promptLogprobs.map((value) => value ?? NaN),
        ),
      }),
      ...(topkPromptLogprobs !== undefined && { topkPromptLogprobs: encodeTopk(topkPromptLogprobs) }),
      ...(targetPromptLogprobs !== undefined && { targetPromptLogprobs: encodeTensor(targetPromptLogprobs) }),
      ...(alt !== undefined && {
        promptAltTokens: { tokens: encodeTensor(alt.tokens), logprobs: encodeTensor(alt.logprobs) },
      }),
    }),
  );
}

/** @throws INVALID_ARGUMENT for other bytes, and lists whose lengths differ. */
export function decodeSampleResponse(bytes: Uint8Array): SampleResponse {
  const message = readMessage("result of a sample", () => fromBinary(SampleResponseSchema, bytes));
  const { promptLogprobs, topkPromptLogprobs, targetPromptLogprobs, promptAltTokens: alt } = message;
  return {
    promptCacheHitTokens: message.promptCacheHitTokens,
    sequences: message.sequences.map(({ stopReason, tokens: tokenBytes, logprobs, topkSampledLogprobs: topk }) => {
      const tokens = [...decodeNumbers("int32", tokenBytes)];
      const values = logprobs === undefined ? undefined : [...decodeNumbers("float32", logprobs)];
      if (values !== undefined && values.length !== tokens.length)
        throw invalidArgument(`A sample has ${tokens.length} tokens and ${values.length} log-probabilities.`);
      return {
        stopReason: stopReason === StopReason.STOP ? "stop" : "length",
        tokens,
        logprobs: values,
        ...(topk !== undefined && { topkLogprobs: decodeTopk(topk) }),
      };
    }),
    ...(promptLogprobs !== undefined && {
      promptLogprobs: Array.from(decodeNumbers("float32", promptLogprobs), (value) =>
        Number.isNaN(value) ? undefined : value,
      ),
    }),
    ...(topkPromptLogprobs !== undefined && { topkPromptLogprobs: decodeTopk(topkPromptLogprobs) }),
    ...(targetPromptLogprobs !== undefined && { targetPromptLogprobs: decodeTensor(targetPromptLogprobs) }),
    ...(alt?.tokens !== undefined &&
      alt.logprobs !== undefined && {
        promptAltTokens: { tokens: decodeTensor(alt.tokens), logprobs: decodeTensor(alt.logprobs) },
      }),
  };
}

function encodeTopk(rows: readonly (readonly TokenLogprob[])[]): TopkLogprobs {
  const k = Math.max(0, ...rows.map(({ length }) => length));
  const cells = rows.flatMap((row) => Array.from({ length: k }, (_, i) => row.at(i)));
  return create(TopkLogprobsSchema, {
    k,
    length: rows.length,
    tokenIds: encodeNumbers(
      "int32",
      cells.map((cell) => cell?.token ?? 0),
    ),
    logprobs: encodeNumbers(
      "float32",
      cells.map((cell) => cell?.logprob ?? EMPTY_LOGPROB),
    ),
  });
}

function decodeTopk({ k, length, tokenIds, logprobs }: TopkLogprobs): TokenLogprob[][] {
  const tokens = decodeNumbers("int32", tokenIds);
  const values = decodeNumbers("float32", logprobs);
  if (tokens.length !== k * length || values.length !== tokens.length)
    throw invalidArgument(`A table of the ${k} most probable tokens at ${length} tokens has ${tokens.length} cells.`);
  return Array.from({ length }, (_, row) =>
    Array.from({ length: k }, (_cell, i) => ({ token: tokens[row * k + i], logprob: values[row * k + i] })).filter(
      ({ logprob }) => logprob !== EMPTY_LOGPROB,
    ),
  );
}
