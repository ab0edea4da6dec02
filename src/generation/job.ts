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
  readonly settle: (reason: FinishReason) => void;
  readonly reject: (error: Error) => void;
}

/** How many of a job's first tokens may have been read by others: from the first whose scores are wanted on, it reads itself. */
export function reusable({ prompt, targets }: Job): number {
  return prompt.length - Math.max(1, targets.length);
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
