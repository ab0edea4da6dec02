import { Conversation, inspectTemplate, type ChatMessage, type Tokenizer } from "../text/index.js";
import { PLAIN_TEMPLATE } from "./plain-template.js";

/** Prompts of one turn that are kept: observations come back often in small tasks. */
const KEPT_PROMPTS = 4096;

/** Writes conversations as a model's chat template wants them; one serves all episodes of a model. */
export class PromptWriter {
  /** Whether the model came with a chat template; without one it reads a plain transcript. */
  readonly hasTemplate: boolean;
  private readonly takesSystem: boolean;
  private readonly prompts = new Map<string, readonly number[]>();

  constructor(
    readonly tokenizer: Tokenizer,
    private readonly replyPrefix = "",
  ) {
    this.hasTemplate = tokenizer.chatTemplates.size > 0;
    this.takesSystem = !this.hasTemplate || inspectTemplate(tokenizer).takesSystem;
  }

  /** A conversation that begins with what the system prompt says. */
  conversation(): Conversation {
    const { replyPrefix } = this;
    return new Conversation(this.tokenizer, {
      replyPrefix,
      ...(this.hasTemplate ? {} : { chatTemplate: PLAIN_TEMPLATE }),
    });
  }

  /** The messages that say a system prompt and a first observation; where a template takes no system message, in one. */
  opening(systemPrompt: string | undefined, shown: string): ChatMessage[] {
    const user: ChatMessage = { role: "user", content: shown };
    if (systemPrompt === undefined || systemPrompt === "") return [user];
    if (!this.takesSystem) return [{ role: "user", content: `${systemPrompt}\n\n${shown}` }];
    return [{ role: "system", content: systemPrompt }, user];
  }

  /** The prompt of a turn that shows no earlier ones. */
  singleTurn(systemPrompt: string | undefined, shown: string): readonly number[] {
    const key = `${systemPrompt ?? ""}\u0000${shown}`;
    const kept = this.prompts.get(key);
    if (kept !== undefined) return kept;
    const conversation = this.conversation();
    conversation.add(...this.opening(systemPrompt, shown));
    const ids = conversation.promptIds();
    if (this.prompts.size >= KEPT_PROMPTS) this.prompts.clear();
    this.prompts.set(key, ids);
    return ids;
  }
}
