import type { ChatOptions } from "./chat-renderer.js";
import { LlamaGymError } from "../../core/errors.js";
import type { ChatMessage } from "./chat-messages.js";
import type { Tokenizer } from "./tokenizer.js";

/** What a chat template does with a conversation, as found by rendering small ones. */
export interface ChatTemplateFeatures {
  /** Earlier turns stay as they were when new ones come, so that one sequence can hold a whole conversation. */
  readonly isIncremental: boolean;
  /** A reply's whitespace at its ends stays. Where not, a reply with such whitespace starts a new sequence. */
  readonly keepsWhitespace: boolean;
  /** A reply's <think> ... </think> stays in later turns. */
  readonly keepsReasoning: boolean;
  /** A system message is taken, and shown. */
  readonly supportsSystemRole: boolean;
  /** Two user messages may follow each other. */
  readonly supportsConsecutiveUserMessages: boolean;
  /** There is a header to prompt for the assistant's next message. */
  readonly hasGenerationPrompt: boolean;
}

const system: ChatMessage = { role: "system", content: "rules" };
const user = (content: string): ChatMessage => ({ role: "user", content });
const assistant = (content: string): ChatMessage => ({ role: "assistant", content });

/**
 * Tries out a tokenizer's chat template. Throws TEMPLATE_FAILED when it has none, or one that refuses even a single
 * user message.
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
  // Some templates leave out what they do not know.
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

/**
 * Whether one sequence can hold a conversation of several turns: the template prints earlier turns as they were.
 * See `inspectTemplate` for the finer points. Throws TEMPLATE_FAILED.
 */
export function templateIsIncremental(tokenizer: Tokenizer, options: ChatOptions = {}): boolean {
  return probeChatTemplate(tokenizer, options).isIncremental;
}
