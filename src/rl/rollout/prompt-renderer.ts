import {
  Conversation,
  supportsSystemRole,
  type ChatMessage,
  type Tokenizer,
  FALLBACK_CHAT_TEMPLATE,
} from "../../models/text/index.js";
import { LruCache, sizeByKey } from "../../core/lru-cache.js";

/** Maximum number of cached single-turn prompts; observations recur often in small tasks. */
const MAX_CACHED_PROMPTS = 4096;

/** Renders conversations with a model's chat template; one renderer serves all episodes. */
export class PromptRenderer {
  /** Whether the model has a chat template; otherwise the fallback is used. */
  readonly hasTemplate: boolean;
  private readonly supportsSystemRole: boolean;
  private readonly cache = new LruCache<readonly number[]>(MAX_CACHED_PROMPTS, sizeByKey);

  constructor(
    readonly tokenizer: Tokenizer,
    private readonly completionPrefix = "",
    /** Further variables of the chat template. */
    private readonly variables?: Readonly<Record<string, unknown>>,
  ) {
    this.hasTemplate = tokenizer.chatTemplates.size > 0;
    this.supportsSystemRole = !this.hasTemplate || supportsSystemRole(tokenizer);
  }

  /** Creates an empty conversation. */
  startConversation(): Conversation {
    const { completionPrefix } = this;
    return new Conversation(this.tokenizer, { completionPrefix, ...this.templateOptions });
  }

  /**
   * Returns the tokens of messages before the completion, which continues a last message of the
   * assistant. @throws TEMPLATE_FAILED
   */
  encodeMessages(messages: readonly ChatMessage[]): readonly number[] {
    const continueFinalMessage = messages.at(-1)?.role === "assistant";
    const options = { ...this.templateOptions, continueFinalMessage, addGenerationPrompt: !continueFinalMessage };
    const rendered = this.tokenizer.renderChat(this.tokenizer.prepareMessages(messages, options), options);
    return this.tokenizer.encodeContinuation(rendered, undefined);
  }

  private get templateOptions() {
    const { variables } = this;
    return this.hasTemplate ? { variables } : { variables, chatTemplate: FALLBACK_CHAT_TEMPLATE };
  }

  /**
   * Returns the messages of a system prompt and the first observation; one message if the template
   * has no system role.
   */
  firstMessages(systemPrompt: string | undefined, observationText: string): ChatMessage[] {
    const user: ChatMessage = { role: "user", content: observationText };
    if (systemPrompt === undefined || systemPrompt === "") return [user];
    if (!this.supportsSystemRole) return [{ role: "user", content: `${systemPrompt}\n\n${observationText}` }];
    return [{ role: "system", content: systemPrompt }, user];
  }

  /** Renders the prompt of a turn without earlier ones. */
  renderSingleTurn(systemPrompt: string | undefined, observationText: string): readonly number[] {
    return this.cache.getOrCreate(JSON.stringify([systemPrompt ?? "", observationText]), () => {
      const conversation = this.startConversation();
      conversation.add(...this.firstMessages(systemPrompt, observationText));
      return conversation.promptIds();
    });
  }
}
