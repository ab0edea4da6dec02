import { LlamaGymError } from "../../core/errors.js";
import type { ChatOptions } from "./chat-renderer.js";
import type { Tokenizer } from "./tokenizer.js";

/**
 * Returns whether a chat template accepts and renders system messages, by rendering one: some
 * reject or omit them.
 * @throws TEMPLATE_FAILED when there is no template.
 */
export function supportsSystemRole(tokenizer: Tokenizer, options: ChatOptions = {}): boolean {
  const user = { role: "user", content: "one" };
  tokenizer.applyChatTemplate([user], options);
  try {
    return tokenizer.applyChatTemplate([{ role: "system", content: "rules" }, user], options).includes("rules");
  } catch (error) {
    if (error instanceof LlamaGymError && error.code === "TEMPLATE_FAILED") return false;
    throw error;
  }
}
