import type { Choice, TokenDistribution } from "../kernels/sampling.js";
import type { FinishReason, ReplyRequest } from "./request.js";

/** Something that runs in a row: a reply to be drawn, or a continuation to be scored. */
export interface Job {
  readonly prompt: readonly number[];
  /** Tokens not yet read. */
  pending: number[];
  readonly reply: ReplyRequest | undefined;
  /** The continuation to score. */
  readonly targets: readonly number[];
  readonly tokens: number[];
  readonly logProbs: number[];
  readonly plainLogProbs: number[];
  readonly values: number[];
  readonly settle: (reason: FinishReason) => void;
  readonly reject: (error: Error) => void;
}

/** How many of a job's first tokens may have been read by others: from the first whose scores are wanted on, it reads itself. */
export function reusable({ prompt, targets }: Job): number {
  return prompt.length - Math.max(1, targets.length);
}

/** What a job's row reads before its first draw: forced tokens may stand behind the prompt. */
export function firstTokens({ prompt, tokens }: Job): readonly number[] {
  return [...prompt, ...tokens];
}

/**
 * A token drawn, what it was drawn from where that was asked for, its log-probability under the model itself, and the value of the
 * state before it.
 */
export interface DrawnToken extends Choice {
  readonly plainLogProb: number;
  readonly value: number;
  readonly distribution: TokenDistribution | undefined;
}

/** Puts a token behind a reply. */
export function append(job: Job, { token, logProb, plainLogProb, value, distribution }: DrawnToken): void {
  job.tokens.push(token);
  job.logProbs.push(logProb);
  job.plainLogProbs.push(plainLogProb);
  job.values.push(value);
  job.pending.push(token);
  if (distribution !== undefined) job.reply!.onDistribution!(distribution, value);
  job.reply!.onToken?.(token);
}

/** Puts those tokens behind a reply that must come next, where it wants them without the model. */
export function appendForced(job: Job): void {
  const { reply } = job;
  if (reply?.skipsForced !== true) return;
  for (;;) {
    const allowed = reply.constraint?.allowed(job.tokens);
    if (allowed?.length !== 1 || finishReason(job) !== undefined) return;
    const isDrawn = reply.settings.temperature > 0;
    // The number that another token would have been drawn by, so that what follows does not depend on who is asked.
    if (isDrawn) reply.random();
    const distribution =
      isDrawn && reply.onDistribution !== undefined
        ? { ids: allowed, probabilities: Float64Array.of(1), count: 1 }
        : undefined;
    append(job, { token: allowed[0], logProb: 0, plainLogProb: NaN, value: NaN, distribution });
  }
}

/** A job's tokens as far as they are known. */
export function sequenceLength({ prompt, tokens, reply }: Job): number {
  return prompt.length + (reply === undefined ? 1 : tokens.length);
}

/** Why a job is over, undefined while it is not. */
export function finishReason({ reply, tokens, plainLogProbs, targets }: Job): FinishReason | undefined {
  if (reply === undefined) return plainLogProbs.length === targets.length ? "length" : undefined;
  const { stopTokens, stopWhen, maxNewTokens, constraint } = reply;
  const last = tokens.at(-1);
  if (last === undefined) return undefined;
  if (stopTokens.has(last) || constraint?.allowed(tokens)?.length === 0) return "stop";
  if (stopWhen?.(tokens) === true) return "stop_string";
  return tokens.length >= maxNewTokens ? "length" : undefined;
}
