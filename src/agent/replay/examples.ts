import type { TokenExample } from "../../algorithms/sft/example.js";
import type { ReplayTurn } from "./buffer.js";

/** A turn as an example: the reply's tokens are learnt, as they were sampled. */
export function turnExample({ prompt, tokens }: Pick<ReplayTurn, "prompt" | "tokens">): TokenExample {
  const mask = new Uint8Array(prompt.length + tokens.length);
  return { tokens: [...prompt, ...tokens], mask: mask.fill(1, prompt.length) };
}
