import type { TokenExample } from "../../data/sft-example.js";
import type { ReplayTurn } from "./replay-buffer.js";

/** Converts a turn to an example whose loss tokens are those of the completion. */
export function toSftExample({ prompt, tokens }: Pick<ReplayTurn, "prompt" | "tokens">): TokenExample {
  const mask = new Uint8Array(prompt.length + tokens.length);
  return { tokens: [...prompt, ...tokens], lossMask: mask.fill(1, prompt.length) };
}
