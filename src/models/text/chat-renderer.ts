import { LlamaGymError } from "../../core/errors.js";
import { chooseTemplate } from "./chat-templates.js";
import { ChatTemplate, type RenderedTemplate, type TemplateInput } from "./jinja/chat-template.js";
import { type ChatMessage, type ToolDefinition, toTemplateMessages } from "./chat-messages.js";

/** How a conversation becomes text. */
export interface ChatOptions {
  /** Functions that the model may call. */
  readonly tools?: readonly ToolDefinition[];
  /** A template's name, or a template, instead of the tokenizer's own. */
  readonly chatTemplate?: string;
  /** What else the template reads, such as { enable_thinking: false }. */
  readonly variables?: Readonly<Record<string, unknown>>;
  /** The time that the template's strftime_now tells; the present by default. */
  readonly now?: Date;
}

/** How a whole conversation is rendered at once. */
export interface RenderOptions extends ChatOptions {
  /** End with the header of the assistant's next message. Default false. */
  readonly addGenerationPrompt?: boolean;
}

/** Renders conversations with a tokenizer's chat templates; each template is parsed once. */
export class ChatRenderer {
  private readonly parsed = new Map<string, ChatTemplate>();

  constructor(
    private readonly templates: ReadonlyMap<string, string>,
    private readonly specialTokens: ReadonlyMap<string, string>,
    private readonly tokenizerName: string,
  ) {}

  /** The conversation's text. Throws TEMPLATE_FAILED and INVALID_ARGUMENT. */
  render(messages: readonly ChatMessage[], options: RenderOptions): string {
    return this.template(options).render(this.buildInput(messages, options));
  }

  /** The conversation's text, and the parts that the template marks as generated. Throws as `render`. */
  renderMarked(messages: readonly ChatMessage[], options: RenderOptions): RenderedTemplate {
    return this.template(options).renderMarked(this.buildInput(messages, options));
  }

  /** Whether the template itself says what the assistant generates. */
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
    if (plainMessages.length === 0) {
      throw new LlamaGymError(
        "TEMPLATE_FAILED",
        "The conversation is empty: a chat template needs at least one message.",
      );
    }
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
