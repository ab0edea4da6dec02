import { checkOptions, type OptionNames } from "../../core/settings.js";
import { LlamaGymError, invalidArgument } from "../../core/errors.js";
import { jsonEntries } from "../../core/lossless-json.js";
import { type Steps, runSteps } from "../../core/steps.js";
import { chooseTemplate } from "./chat-templates.js";
import { ContentMarker, collectTexts, markMessages, readMarked, requireNoncharacters } from "./content-marker.js";
import { ChatTemplate, type RenderedTemplate, type TemplateInput } from "./jinja/chat-template.js";
import { type ChatMessage, type ContentPart, type ToolDefinition, toTemplateMessages } from "./chat-messages.js";
import { type MessageForms, prepareMessages, probeMessageForms } from "./prepare-messages.js";
import { type RenderedText, sliceRendered, truncateRendered } from "./rendered-text.js";

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
   * Whether special tokens that are written in messages and tools are encoded as plain text; those
   * that the template writes are special tokens always. Default: the tokenizer's
   * `splitSpecialTokens`.
   */
  readonly splitSpecialTokens?: boolean;
}

/** Options for rendering a whole conversation. */
export interface RenderOptions extends ChatOptions {
  /** Whether to append the header of the assistant's next message. Default false. */
  readonly addGenerationPrompt?: boolean;
  /** Whether the text ends with the content of the last message, to be continued. Default false. */
  readonly continueFinalMessage?: boolean;
}

/** The names of `ChatOptions`. */
export const chatOptionNames: OptionNames<ChatOptions> = {
  tools: Array,
  chatTemplate: String,
  variables: Object,
  now: Date,
  splitSpecialTokens: Boolean,
};

const renderOptionNames: OptionNames<RenderOptions> = {
  ...chatOptionNames,
  addGenerationPrompt: Boolean,
  continueFinalMessage: Boolean,
};

/** @throws INVALID_ARGUMENT for an option that rendering does not have. */
export function checkRenderOptions(options: RenderOptions): void {
  checkOptions("A chat template", options, renderOptionNames, "Variables of the template go into `variables`.");
}

/** Names of Transformers' `chat_template_kwargs` that are options of rendering, not variables. */
export const RESERVED_VARIABLES = ["chat_template", "add_generation_prompt", "continue_final_message"];

/** A template with the marker of its content. */
interface ParsedTemplate {
  readonly template: ChatTemplate;
  readonly marker: ContentMarker;
  forms?: MessageForms;
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
    if (options.continueFinalMessage === true) return this.renderUnfinished(messages, options);
    return this.run(messages, options, (template, input) => ({ text: template.render(input), generated: [] }));
  }

  /**
   * Renders a conversation with the ranges that the template marks as generated. @throws as
   * `render`.
   */
  renderMarked(messages: readonly ChatMessage[], options: RenderOptions): RenderedText & RenderedTemplate {
    return runSteps(this.run(messages, options, (template, input) => template.renderMarked(input)));
  }

  /**
   * Renders a conversation and returns what follows the content of a message; undefined if the
   * template does not print the content exactly once. Other fields of the message are left out.
   * @throws as `render`.
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

  /**
   * Renders a conversation and returns the positions of the characters that come from fields of its
   * messages. @throws as `render`.
   */
  locate(
    messages: readonly ChatMessage[],
    isMarked: (field: string, index: number) => boolean,
    options: RenderOptions,
  ): { readonly text: string; readonly positions: readonly number[] } {
    const { template } = this.parse(options);
    const { variables, now } = this.buildInput(messages, options);
    const plain = variables.messages as Record<string, unknown>[];
    const marked = markMessages(plain, isMarked, [...collectTexts(variables), template.source]);
    const { marks } = marked;
    const rendered = template.render({ variables: { ...variables, messages: marked.messages }, now, marks });
    return { text: marks.unmark(rendered), positions: Array.from(marks.findMarks(rendered)) };
  }

  /** Returns messages with content and tool calls in the forms that the template prints. */
  prepareMessages(messages: readonly ChatMessage[], options: ChatOptions): readonly ChatMessage[] {
    if (messages.length === 0) return messages;
    const parsed = this.parse(options);
    parsed.forms ??= probeMessageForms((probe) => parsed.template.render(this.buildInput(probe, options)));
    return prepareMessages(messages, parsed.forms);
  }

  /** Returns the text of the template that is used. @throws TEMPLATE_FAILED without one. */
  getSource(options: ChatOptions): string {
    return this.parse(options).template.source;
  }

  /** Whether the template marks what the assistant generates. */
  marksGeneration(options: ChatOptions): boolean {
    return this.parse(options).template.marksGeneration;
  }

  /**
   * Renders a conversation up to the end of the last message's content, as Transformers'
   * `continue_final_message`.
   */
  private *renderUnfinished(messages: readonly ChatMessage[], unfinished: RenderOptions): Steps<RenderedText> {
    const options = { ...unfinished, continueFinalMessage: false };
    if (options.addGenerationPrompt === true)
      throw invalidArgument("A message is either continued or begun: set continueFinalMessage or addGenerationPrompt.");
    const { source } = this.parse(options).template;
    const [end] = requireNoncharacters([...collectTexts([messages, options.tools, options.variables]), source], 1);
    // A template that trims content removes the space after the mark, and then those before the
    // mark as well.
    const rendered = yield* this.renderSteps(appendToLast(messages, `${end} `), options);
    const at = rendered.text.lastIndexOf(end);
    if (at < 0)
      throw new LlamaGymError(
        "TEMPLATE_FAILED",
        "The chat template does not print the content of the last message, so it cannot be continued.",
      );
    const text = rendered.text.slice(0, at);
    return truncateRendered(rendered, rendered.text[at + 1] === " " ? at : text.trimEnd().length);
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

/** Appends to the text of the last message. @throws INVALID_ARGUMENT for a message without text. */
function appendToLast(messages: readonly ChatMessage[], end: string): readonly ChatMessage[] {
  const last = messages.at(-1);
  const content = last?.content;
  if (typeof content === "string") return messages.with(messages.length - 1, { ...last!, content: content + end });
  const index = Array.isArray(content)
    ? content.findLastIndex(({ text }: ContentPart) => typeof text === "string")
    : -1;
  if (index < 0) throw invalidArgument("The last message has no text that could be continued.");
  const parts = content as readonly ContentPart[];
  return messages.with(messages.length - 1, {
    ...last!,
    content: parts.with(index, { ...parts[index], text: parts[index].text! + end }),
  });
}
