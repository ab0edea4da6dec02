import type { LanguageModel } from "../generation/language-model.js";
import { inspectTemplate } from "../text/index.js";
import type { ChatMessage } from "../text/index.js";
import { hasChatTemplate } from "./open-model.js";

interface Turn {
  readonly shown: string;
  /** Empty while it is awaited. */
  reply: string;
}

/** How a dialogue reads: by the chat template with or without a system message, or as a plain text. */
type Form = "system" | "user" | "plain";

/** What a model has been shown and has replied in an episode, as long as it fits the context. */
export class AgentDialogue {
  private readonly turns: Turn[] = [];
  private readonly form: Form;

  constructor(
    private readonly model: LanguageModel,
    private readonly systemPrompt: string,
  ) {
    const { tokenizer } = model;
    this.form = !hasChatTemplate(model) ? "plain" : inspectTemplate(tokenizer).takesSystem ? "system" : "user";
  }

  /** Shows the model what it is to reply to. */
  show(shown: string): void {
    this.turns.push({ shown, reply: "" });
  }

  /** Keeps what it replied. */
  answer(reply: string): void {
    this.turns[this.turns.length - 1].reply = reply;
  }

  /**
   * The prompt's tokens, with room for a reply of `reserved` ones: the oldest turns are forgotten until it fits, the
   * system prompt and the last turn never.
   */
  prompt(reserved: number): { readonly tokens: readonly number[]; readonly forgotten: number } {
    const room = this.model.causalLM.config.maxPositions - reserved;
    let tokens = this.tokens();
    let forgotten = 0;
    for (; tokens.length > room && this.turns.length > 1; forgotten++) {
      this.turns.shift();
      tokens = this.tokens();
    }
    return { tokens, forgotten };
  }

  private tokens(): readonly number[] {
    const { tokenizer } = this.model;
    if (this.form === "plain") return tokenizer.encode(this.plain());
    const text = tokenizer.applyChatTemplate(this.messages(), { addGenerationPrompt: true });
    return tokenizer.encode(text, { addSpecialTokens: false });
  }

  private messages(): ChatMessage[] {
    const { form, systemPrompt } = this;
    const messages = this.turns.flatMap(({ shown, reply }, i): ChatMessage[] => {
      const content = form === "user" && i === 0 ? `${systemPrompt}\n\n${shown}` : shown;
      const user = { role: "user", content };
      return i === this.turns.length - 1 ? [user] : [user, { role: "assistant", content: reply }];
    });
    return form === "system" ? [{ role: "system", content: systemPrompt }, ...messages] : messages;
  }

  /** For models without a chat template: a transcript with the replies behind ">". */
  private plain(): string {
    const turns = this.turns.map(({ shown, reply }) => `${shown}\n>${reply === "" ? "" : ` ${reply}`}`);
    return [this.systemPrompt, ...turns].join("\n\n");
  }
}
