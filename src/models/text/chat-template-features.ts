import type { ChatOptions } from "./chat-renderer.js";
import { LlamaGymError } from "../../core/errors.js";
import type { ChatMessage } from "./chat-messages.js";
import type { Tokenizer } from "./tokenizer.js";

/** Behavior of a chat template, determined by rendering short conversations. */
export interface ChatTemplateFeatures {
  /** Whether earlier turns are unchanged by new ones, so that one sequence can hold a conversation. */
  readonly isIncremental: boolean;
  /**
   * Whether leading and trailing whitespace of completions is preserved. If not, such a completion
   * starts a new sequence.
   */
  readonly keepsWhitespace: boolean;
  /** Whether a completion's <think> ... </think> is kept in later turns. */
  readonly keepsReasoning: boolean;
  /** Whether system messages are accepted and rendered. */
  readonly supportsSystemRole: boolean;
  /** Whether consecutive user messages are accepted. */
  readonly supportsConsecutiveUserMessages: boolean;
  /** Whether the assistant's next message has a header. */
  readonly hasGenerationPrompt: boolean;
}

const system: ChatMessage = { role: "system", content: "rules" };
const user = (content: string): ChatMessage => ({ role: "user", content });
const assistant = (content: string): ChatMessage => ({ role: "assistant", content });

/**
 * Determines a chat template's features. @throws TEMPLATE_FAILED when there is none or it rejects a
 * single user message.
 */
export function probeChatTemplate(tokenizer: Tokenizer, options: ChatOptions = {}): ChatTemplateFeatures {
  const now = options.now ?? new Date();
  const render = (messages: readonly ChatMessage[], addGenerationPrompt = true) =>
    tokenizer.applyChatTemplate(messages, { ...options, now, addGenerationPrompt });
  const tryRender = (messages: readonly ChatMessage[]): string | null => {
    try {
      return render(messages);
    } catch (error) {
      if (error instanceof LlamaGymError && error.code === "TEMPLATE_FAILED") return null;
      throw error;
    }
  };
  const isPreserved = (start: readonly ChatMessage[], reply: string): boolean => {
    const prompt = tryRender(start);
    const next = tryRender([...start, assistant(reply), user("two")]);
    return prompt !== null && next !== null && next.startsWith(prompt + reply);
  };
  const first = [user("one")];
  const prompt = render(first);
  // Some templates omit unknown messages.
  const supportsSystemRole = tryRender([system, ...first])?.includes("rules") === true;
  const conversations = supportsSystemRole ? [first, [system, ...first]] : [first];
  return {
    isIncremental: conversations.every(
      (start) => isPreserved(start, "yes") && isPreserved([...start, assistant("yes"), user("two")], "no"),
    ),
    keepsWhitespace: isPreserved(first, " yes \n"),
    keepsReasoning: isPreserved(first, "<think>\nwhy\n</think>\n\nyes"),
    supportsSystemRole,
    supportsConsecutiveUserMessages: tryRender([...first, user("two")]) !== null,
    hasGenerationPrompt: prompt !== render(first, false),
  };
}
