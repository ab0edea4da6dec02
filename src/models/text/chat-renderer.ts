import { LlamaGymError } from "../../core/errors.js";
import { jsonEntries } from "../../core/lossless-json.js";
import { type Steps, runSteps } from "../../core/steps.js";
import { chooseTemplate } from "./chat-templates.js";
import { ContentMarker, collectTexts, markMessage, readMarked, requireNoncharacters } from "./content-marker.js";
import { ChatTemplate, type RenderedTemplate, type TemplateInput } from "./jinja/chat-template.js";
import { type ChatMessage, type ToolDefinition, toTemplateMessages } from "./chat-messages.js";
import { type ArgumentsForm, prepareToolCalls, probeArgumentsForm } from "./tool-arguments.js";
import { type RenderedText, sliceRendered } from "./rendered-text.js";

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
  /**
   * Whether special tokens that are written in messages and tools are encoded as plain text; those that the template writes
   * are special tokens always. Default: the tokenizer's `splitSpecialTokens`.
   */
  readonly splitSpecialTokens?: boolean;
}

/** Options for rendering a whole conversation. */
export interface RenderOptions extends ChatOptions {
  /** Whether to append the header of the assistant's next message. Default false. */
  readonly addGenerationPrompt?: boolean;
}

/** A template with the marker of its content. */
interface ParsedTemplate {
  readonly template: ChatTemplate;
  readonly marker: ContentMarker;
  argumentsForm?: ArgumentsForm;
}

/** Renders conversations with a tokenizer's chat templates, parsing each template once. */
export class ChatRenderer {
  private readonly parsed = new Map<string, ParsedTemplate>();

  constructor(
    private readonly templates: ReadonlyMap<string, string>,
    private readonly tokenizer: {
      /** Special tokens by role, which are variables of the templates. */
      readonly variables: ReadonlyMap<string, string>;
      /** Contents of all special tokens. */
      readonly specialTokens: readonly string[];
      readonly splitSpecialTokens: boolean;
      readonly tokenizerName: string;
    },
  ) {}

  /** Renders a conversation. @throws TEMPLATE_FAILED and INVALID_ARGUMENT. */
  render(messages: readonly ChatMessage[], options: RenderOptions): RenderedText {
    return runSteps(this.renderSteps(messages, options));
  }

  /** Renders as `render`, in steps. */
  renderSteps(messages: readonly ChatMessage[], options: RenderOptions): Steps<RenderedText> {
    return this.run(messages, options, (template, input) => ({ text: template.render(input), generated: [] }));
  }

  /** Renders a conversation with the ranges that the template marks as generated. @throws as `render`. */
  renderMarked(messages: readonly ChatMessage[], options: RenderOptions): RenderedText & RenderedTemplate {
    return runSteps(this.run(messages, options, (template, input) => template.renderMarked(input)));
  }

  /**
   * Renders a conversation and returns what follows the content of a message; undefined if the template does not print
   * the content exactly once. Other fields of the message are left out. @throws as `render`.
   */
  renderAfter(messages: readonly ChatMessage[], index: number, options: RenderOptions): RenderedText | undefined {
    const { source } = this.parse(options).template;
    const [content] = requireNoncharacters([...collectTexts([messages, options.tools, options.variables]), source], 1);
    const { role } = messages[index];
    const rendered = this.render(messages.with(index, { role, content }), options);
    const position = rendered.text.indexOf(content);
    if (position < 0 || rendered.text.includes(content, position + 1)) return undefined;
    return sliceRendered(rendered, position + content.length);
  }

  /** Renders a conversation and returns the positions of the characters that come from a message. @throws as `render`. */
  locateMessage(
    messages: readonly ChatMessage[],
    index: number,
    options: RenderOptions,
  ): { readonly text: string; readonly positions: readonly number[] } {
    const { template } = this.parse(options);
    const { variables, now } = this.buildInput(messages, options);
    const plain = variables.messages as Record<string, unknown>[];
    const { message, marks } = markMessage(plain[index], [...collectTexts(variables), template.source]);
    const rendered = template.render({
      variables: { ...variables, messages: plain.with(index, { ...message }) },
      now,
      marks,
    });
    return { text: marks.unmark(rendered), positions: Array.from(marks.findMarks(rendered)) };
  }

  /** Returns messages whose tool calls have arguments in the form that the template prints. */
  prepareToolCalls(messages: readonly ChatMessage[], options: ChatOptions): readonly ChatMessage[] {
    return prepareToolCalls(messages, () => {
      const parsed = this.parse(options);
      return (parsed.argumentsForm ??= probeArgumentsForm((probe) =>
        parsed.template.render(this.buildInput(probe, options)),
      ));
    });
  }

  /** Whether the template marks what the assistant generates. */
  marksGeneration(options: ChatOptions): boolean {
    return this.parse(options).template.marksGeneration;
  }

  private *run(
    messages: readonly ChatMessage[],
    options: RenderOptions,
    render: (template: ChatTemplate, input: TemplateInput) => RenderedTemplate,
  ): Steps<RenderedText & RenderedTemplate> {
    const { template, marker } = this.parse(options);
    const { variables, now } = this.buildInput(messages, options);
    const isSplit = options.splitSpecialTokens ?? this.tokenizer.splitSpecialTokens;
    if (!isSplit) return { ...render(template, { variables, now }), literals: undefined };
    const marked = yield* marker.mark([variables.messages, variables.tools]);
    yield;
    if (marked === undefined) return { ...render(template, { variables, now }), literals: [] };
    const { marks } = marked;
    const [content, tools] = marked.contents;
    const { text, generated } = render(template, { variables: { ...variables, messages: content, tools }, now, marks });
    yield;
    // A mark is as long as its character.
    return { ...(yield* readMarked(text, marks)), generated };
  }

  private parse({ chatTemplate, tools }: ChatOptions): ParsedTemplate {
    const source = chooseTemplate(this.templates, chatTemplate, tools !== undefined, this.tokenizer.tokenizerName);
    let parsed = this.parsed.get(source);
    if (!parsed) {
      parsed = { template: new ChatTemplate(source), marker: new ContentMarker(this.tokenizer.specialTokens, source) };
      this.parsed.set(source, parsed);
    }
    return parsed;
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
        ...Object.fromEntries(this.tokenizer.variables),
        messages: plainMessages,
        tools: options.tools ?? null,
        documents: null,
        add_generation_prompt: options.addGenerationPrompt ?? false,
        ...Object.fromEntries(jsonEntries(options.variables ?? {})),
      },
      now: options.now,
    };
  }
}
