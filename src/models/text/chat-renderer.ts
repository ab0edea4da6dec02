import { LlamaGymError } from "../../core/errors.js";
import { chooseTemplate } from "./chat-templates.js";
import { ChatTemplate, type RenderedTemplate, type TemplateInput } from "./jinja/chat-template.js";
import { type ChatMessage, type ToolDefinition, toTemplateMessages } from "./chat-messages.js";

/** Chat template options. */
export interface ChatOptions {
  /** Functions available to the model. */
  readonly tools?: readonly ToolDefinition[];
  /** A template's name or text, instead of the default template. */
  readonly chatTemplate?: string;
  /** Further template variables, such as { enable_thinking: false }. */
  readonly variables?: Readonly<Record<string, unknown>>;
  /** Time of strftime_now; default now. */
  readonly now?: Date;
}

/** Options for rendering a whole conversation. */
export interface RenderOptions extends ChatOptions {
  /** Whether to append the header of the assistant's next message. Default false. */
  readonly addGenerationPrompt?: boolean;
}

/** Renders conversations with a tokenizer's chat templates, parsing each template once. */
export class ChatRenderer {
  private readonly parsed = new Map<string, ChatTemplate>();

  constructor(
    private readonly templates: ReadonlyMap<string, string>,
    private readonly specialTokens: ReadonlyMap<string, string>,
    private readonly tokenizerName: string,
  ) {}

  /** Renders a conversation. @throws TEMPLATE_FAILED and INVALID_ARGUMENT. */
  render(messages: readonly ChatMessage[], options: RenderOptions): string {
    return this.template(options).render(this.buildInput(messages, options));
  }

  /** Renders a conversation with the ranges that the template marks as generated. @throws as `render`. */
  renderMarked(messages: readonly ChatMessage[], options: RenderOptions): RenderedTemplate {
    return this.template(options).renderMarked(this.buildInput(messages, options));
  }

  /** Whether the template marks what the assistant generates. */
  marksGeneration(options: ChatOptions): boolean {
    return this.template(options).marksGeneration;
  }

  private template({ chatTemplate, tools }: ChatOptions): ChatTemplate {
    const source = chooseTemplate(this.templates, chatTemplate, tools !== undefined, this.tokenizerName);
    let template = this.parsed.get(source);
    if (!template) {
      template = new ChatTemplate(source);
      this.parsed.set(source, template);
    }
    return template;
  }

  private buildInput(messages: readonly ChatMessage[], options: RenderOptions): TemplateInput {
    const plainMessages = toTemplateMessages(messages);
    if (plainMessages.length === 0)
      throw new LlamaGymError(
        "TEMPLATE_FAILED",
        "The conversation is empty; a chat template requires at least one message.",
      );
    return {
      variables: {
        ...Object.fromEntries(this.specialTokens),
        messages: plainMessages,
        tools: options.tools ?? null,
        documents: null,
        add_generation_prompt: options.addGenerationPrompt ?? false,
        ...options.variables,
      },
      now: options.now,
    };
  }
}
