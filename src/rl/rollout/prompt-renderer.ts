import { Conversation, probeChatTemplate, type ChatMessage, type Tokenizer } from "../../models/text/index.js";
import { FALLBACK_CHAT_TEMPLATE } from "./fallback-chat-template.js";

/** Prompts of one turn that are kept: observations come back often in small tasks. */
const MAX_CACHED_PROMPTS = 4096;

/** Writes conversations as a model's chat template wants them; one serves all episodes of a model. */
export class PromptRenderer {
  /** Whether the model came with a chat template; without one it reads a plain transcript. */
  readonly hasTemplate: boolean;
  private readonly supportsSystemRole: boolean;
  private readonly cache = new Map<string, readonly number[]>();

  constructor(
    readonly tokenizer: Tokenizer,
    private readonly completionPrefix = "",
  ) {
    this.hasTemplate = tokenizer.chatTemplates.size > 0;
    this.supportsSystemRole = !this.hasTemplate || probeChatTemplate(tokenizer).supportsSystemRole;
  }

  /** A conversation that begins with what the system prompt says. */
  startConversation(): Conversation {
    const { completionPrefix } = this;
    return new Conversation(this.tokenizer, {
      completionPrefix: completionPrefix,
      ...(this.hasTemplate ? {} : { chatTemplate: FALLBACK_CHAT_TEMPLATE }),
    });
  }

  /** The messages that say a system prompt and a first observation; where a template takes no system message, in one. */
  firstMessages(systemPrompt: string | undefined, observationText: string): ChatMessage[] {
    const user: ChatMessage = { role: "user", content: observationText };
    if (systemPrompt === undefined || systemPrompt === "") return [user];
    if (!this.supportsSystemRole) return [{ role: "user", content: `${systemPrompt}\n\n${observationText}` }];
    return [{ role: "system", content: systemPrompt }, user];
  }

  /** The prompt of a turn that shows no earlier ones. */
  renderSingleTurn(systemPrompt: string | undefined, observationText: string): readonly number[] {
    const key = `${systemPrompt ?? ""}\u0000${observationText}`;
    const cached = this.cache.get(key);
    if (cached !== undefined) return cached;
    const conversation = this.startConversation();
    conversation.add(...this.firstMessages(systemPrompt, observationText));
    const ids = conversation.promptIds();
    if (this.cache.size >= MAX_CACHED_PROMPTS) this.cache.clear();
    this.cache.set(key, ids);
    return ids;
  }
}
