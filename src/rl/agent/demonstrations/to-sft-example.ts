import type { TokenExample } from "../../data/sft-example.js";
import type { ReplayTurn } from "./replay-buffer.js";

/** A turn as an example: the reply's tokens are learnt, as they were sampled. */
export function toSftExample({ prompt, tokens }: Pick<ReplayTurn, "prompt" | "tokens">): TokenExample {
  const mask = new Uint8Array(prompt.length + tokens.length);
  return { tokens: [...prompt, ...tokens], lossMask: mask.fill(1, prompt.length) };
}
