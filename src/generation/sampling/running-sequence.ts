import type { SampledToken, TokenDistribution } from "../../engine/runtime/kernels/sampling.js";
import type { FinishReason, SampleRequest } from "./sample-request.js";

/** Something that runs in a row: a reply to be drawn, or a continuation to be scored. */
export interface RunningSequence {
  readonly prompt: readonly number[];
  /** Tokens not yet read. */
  unprocessedTokens: number[];
  readonly request: SampleRequest | undefined;
  /** The continuation to score. */
  readonly scoredTokens: readonly number[];
  readonly tokens: number[];
  readonly logProbs: number[];
  readonly rawLogProbs: number[];
  readonly values: number[];
  readonly finish: (reason: FinishReason) => void;
  readonly reject: (error: Error) => void;
}

/** How many of a job's first tokens may have been read by others: from the first whose scores are wanted on, it reads itself. */
export function reusablePrefixLength({ prompt, scoredTokens }: RunningSequence): number {
  return prompt.length - Math.max(1, scoredTokens.length);
}

/** What a job's row reads before its first draw: forced tokens may stand behind the prompt. */
export function tokensToPrefill({ prompt, tokens }: RunningSequence): readonly number[] {
  return [...prompt, ...tokens];
}

/**
 * A token drawn, what it was drawn from where that was asked for, its log-probability under the model itself, and the value of the
 * state before it.
 */
export interface SampledTokenWithState extends SampledToken {
  readonly rawLogProb: number;
  readonly value: number;
  readonly distribution: TokenDistribution | undefined;
}

/** Puts a token behind a reply. */
export function appendToken(
  sequence: RunningSequence,
  { token, logProb, rawLogProb, value, distribution }: SampledTokenWithState,
): void {
  sequence.tokens.push(token);
  sequence.logProbs.push(logProb);
  sequence.rawLogProbs.push(rawLogProb);
  sequence.values.push(value);
  sequence.unprocessedTokens.push(token);
  if (distribution !== undefined) sequence.request!.onDistribution!(distribution, value);
  sequence.request!.onToken?.(token);
}

/** Puts those tokens behind a reply that must come next, where it wants them without the model. */
export function appendForcedTokens(sequence: RunningSequence): void {
  const { request } = sequence;
  if (request?.skipForcedTokens !== true) return;
  for (;;) {
    const allowedTokens = request.constraint?.allowedTokens(sequence.tokens);
    if (allowedTokens?.length !== 1 || finishReason(sequence) !== undefined) return;
    const isSampled = request.sampling.temperature > 0;
    // The number that another token would have been drawn by, so that what follows does not depend on who is asked.
    if (isSampled) request.random();
    const distribution =
      isSampled && request.onDistribution !== undefined
        ? { ids: allowedTokens, probabilities: Float64Array.of(1), count: 1 }
        : undefined;
    appendToken(sequence, { token: allowedTokens[0], logProb: 0, rawLogProb: NaN, value: NaN, distribution });
  }
}

/** A job's tokens as far as they are known. */
export function sequenceLength({ prompt, tokens, request }: RunningSequence): number {
  return prompt.length + (request === undefined ? 1 : tokens.length);
}

/** Why a job is over, undefined while it is not. */
export function finishReason({
  request,
  tokens,
  rawLogProbs,
  scoredTokens,
}: RunningSequence): FinishReason | undefined {
  if (request === undefined) return rawLogProbs.length === scoredTokens.length ? "length" : undefined;
  const { stopTokens, shouldStop, maxNewTokens, constraint: compiled } = request;
  const last = tokens.at(-1);
  if (last === undefined) return undefined;
  if (stopTokens.has(last) || compiled?.allowedTokens(tokens)?.length === 0) return "stop";
  if (shouldStop?.(tokens) === true) return "stop_string";
  return tokens.length >= maxNewTokens ? "length" : undefined;
}
