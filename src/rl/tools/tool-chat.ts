import { LlamaGymError } from "../../core/errors.js";
import type { JsonObject } from "../../core/json.js";
import {
  type ChatMessage,
  FALLBACK_CHAT_TEMPLATE,
  type RenderOptions,
  type RenderedText,
  sliceRendered,
  type Tokenizer,
} from "../../models/text/index.js";
import type { RequestedCall } from "./tool.js";
import {
  type FunctionTool,
  readCalls,
  readToolCallFormat,
  toTemplateInput,
  type ToolCallFormat,
  unsupportedFormat,
} from "./tool-calls.js";

/** A completion as a message, and the calls in it. */
export interface ParsedCompletion {
  readonly message: ChatMessage;
  /** Calls of the message in order, each with the id of its result. */
  readonly calls: readonly (RequestedCall & { readonly id: string })[];
}

/** Chats in which a model may call tools, in the format of its chat template. */
export class ToolChat {
  private readonly format: ToolCallFormat;
  private readonly chatTemplate: string | undefined;

  /** @throws INVALID_ARGUMENT for a chat template whose format of tool calls is not supported. */
  constructor(
    private readonly model: { readonly tokenizer: Tokenizer; readonly endTokenIds: readonly number[] },
    private readonly tools: readonly FunctionTool[],
    private readonly variables?: Readonly<Record<string, unknown>>,
  ) {
    const { chatTemplates } = model.tokenizer;
    this.chatTemplate = chatTemplates.size > 0 ? undefined : FALLBACK_CHAT_TEMPLATE;
    const template = this.chatTemplate ?? chatTemplates.get("tool_use") ?? chatTemplates.get("default");
    this.format = readToolCallFormat(template, false) ?? unsupportedFormat(tools, "Train it without tools.");
  }

  /** Encodes the prompt of messages, with the descriptions of the tools. @throws TEMPLATE_FAILED */
  encodePrompt(messages: readonly ChatMessage[]): readonly number[] {
    const { chatTemplate, variables, model } = this;
    const prepared = model.tokenizer.prepareMessages(messages, { chatTemplate, variables });
    return model.tokenizer.encodeContinuation(this.render(prepared, true), undefined);
  }

  /** Decodes a completion, without its end token. */
  decode(tokens: readonly number[]): string {
    const { tokenizer, endTokenIds } = this.model;
    const hasEnd = endTokenIds.includes(tokens.at(-1) ?? -1);
    return tokenizer.decodeContinuation(hasEnd ? tokens.slice(0, -1) : tokens);
  }

  /** Reads the calls of a completion; ids are numbered from `firstId`. */
  parse(tokens: readonly number[], firstId: number): ParsedCompletion {
    const text = this.decode(tokens);
    const { content, written } = splitCalls(text, this.format);
    const calls = written
      .flatMap((part) => readCalls(part, this.format) ?? [{ name: "unknown", args: undefined }])
      .map(({ name, args }, i) => ({
        id: `call${String(firstId + i).padStart(5, "0")}`,
        name,
        args: args === undefined ? undefined : (JSON.parse(args) as JsonObject),
      }));
    const read = calls.filter(({ args }) => args !== undefined);
    return {
      // A malformed call is only in the text.
      message: {
        role: "assistant",
        content: read.length < calls.length ? text : content,
        ...(read.length === 0 ? {} : { tool_calls: read.map(toMessageCall) }),
      },
      calls,
    };
  }

  /**
   * Encodes the results of a completion's calls and the header of the next completion, as the chat
   * template prints them after it.
   * @throws TEMPLATE_FAILED for a template that rejects them.
   */
  encodeResults(prompt: readonly ChatMessage[], results: readonly ChatMessage[], lastToken: number): readonly number[] {
    const rest = this.renderAfterText(prompt, results) ?? this.renderAfterCalls(prompt, results);
    const added = skipSampledEnd(this.model, rest, lastToken) ?? rest;
    return this.model.tokenizer.encodeContinuation(added, lastToken);
  }

  /** Renders what follows an answer of plain text; undefined where the template rejects it. */
  private renderAfterText(prompt: readonly ChatMessage[], results: readonly ChatMessage[]): RenderedText | undefined {
    const input = this.toInput([...prompt, { role: "assistant", content: "" }, ...results]);
    const index = input.messages.length - 1 - results.length;
    try {
      return this.model.tokenizer.renderAfter(input.messages, index, { ...input.options, addGenerationPrompt: true });
    } catch (error) {
      if (error instanceof LlamaGymError && error.code === "TEMPLATE_FAILED") return undefined;
      throw error;
    }
  }

  /** Renders what follows an answer of calls without arguments. */
  private renderAfterCalls(prompt: readonly ChatMessage[], results: readonly ChatMessage[]): RenderedText {
    const calls = results.map(({ tool_call_id: id, name }) => toMessageCall({ id, name, args: {} }));
    const history = [...prompt, { role: "assistant", content: "", tool_calls: calls }];
    const before = this.render(history, false).text;
    const rendered = this.render([...history, ...results], true);
    const ends = this.endTexts().map((end) => before.lastIndexOf(end));
    const length = Math.max(...ends) >= 0 ? Math.max(...ends) : before.length;
    if (rendered.text.startsWith(before.slice(0, length))) return sliceRendered(rendered, length);
    throw new LlamaGymError(
      "TEMPLATE_FAILED",
      "This model's chat template changes earlier messages when results of tools follow, so that completions cannot continue after them.",
    );
  }

  private endTexts(): string[] {
    const { tokenizer, endTokenIds } = this.model;
    return endTokenIds.map((id) => tokenizer.decodeContinuation([id])).filter((text) => text !== "");
  }

  private render(messages: readonly ChatMessage[], addGenerationPrompt: boolean): RenderedText {
    const input = this.toInput(messages);
    return this.model.tokenizer.renderChat(input.messages, { ...input.options, addGenerationPrompt });
  }

  private toInput(messages: readonly ChatMessage[]): {
    readonly messages: readonly ChatMessage[];
    readonly options: RenderOptions;
  } {
    const { tools, format, chatTemplate, variables } = this;
    const { messages: rendered, tools: definitions } = toTemplateInput(messages, tools, format);
    return { messages: rendered, options: { tools: definitions, chatTemplate, variables } };
  }
}

/**
 * Drops the end of a message from what a chat template prints after its content, where the last
 * sampled token is an end already; undefined if the template prints none.
 */
export function skipSampledEnd(
  { tokenizer, endTokenIds }: { readonly tokenizer: Tokenizer; readonly endTokenIds: readonly number[] },
  rest: RenderedText,
  lastToken: number,
): RenderedText | undefined {
  if (!endTokenIds.includes(lastToken)) return rest;
  const ends = [lastToken, ...endTokenIds].map((id) => tokenizer.decodeContinuation([id]));
  const printed = ends.find((end) => end !== "" && rest.text.startsWith(end));
  return printed === undefined ? undefined : sliceRendered(rest, printed.length);
}

/** Splits a completion into its text and the texts of its calls. */
function splitCalls(
  text: string,
  format: ToolCallFormat,
): { readonly content: string; readonly written: readonly string[] } {
  const open = format.open.trim();
  if (open === "") {
    const call = text.trim();
    const isCall = (readCalls(call, format) ?? []).some(({ args }) => args !== undefined);
    return isCall ? { content: "", written: [call] } : { content: text, written: [] };
  }
  const close = format.close.trim();
  const [before, ...parts] = text.split(open);
  if (parts.length === 0) return { content: text, written: [] };
  const ends = parts.map((part) => (close === "" ? -1 : part.indexOf(close)));
  const last = parts.at(-1)!;
  const lastEnd = ends.at(-1)!;
  const after = lastEnd < 0 ? "" : last.slice(lastEnd + close.length);
  return {
    content: (before + after).trim(),
    written: parts.map((part, i) => (ends[i] < 0 ? part : part.slice(0, ends[i])).trim()),
  };
}

function toMessageCall({ id, name, args }: { readonly id: unknown; readonly name: unknown; readonly args: unknown }) {
  return { id, type: "function", function: { name, arguments: args } };
}
