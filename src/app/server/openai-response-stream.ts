import type { ToolCall } from "../../rl/tools/index.js";
import type { ChatChoice, ChatDelta, ChatEngine, ChatResult } from "./chat-engine.js";
import { countTokens, createId, unixTime, type ServerEvent, type StreamEncoder } from "./wire-format.js";

/** Returns the item of a text. */
function formatMessage(id: string, text: string, status = "completed"): object {
  return { type: "message", id, status, role: "assistant", content: status === "completed" ? [formatText(text)] : [] };
}

/** Names and namespaces of the tools that have one, by their names in the prompt. */
export type CalledNames = ReadonlyMap<string, { readonly name: string; readonly namespace: string }>;

/** Returns the item of a tool call. */
function formatCall({ id, name, arguments: args }: ToolCall, itemId: string, names: CalledNames): object {
  const called = names.get(name) ?? { name };
  return { type: "function_call", id: itemId, call_id: id, ...called, arguments: args, status: "completed" };
}

const formatText = (text: string) => ({ type: "output_text", text, annotations: [], logprobs: [] });

/** Returns the fields of a finished response. */
export function formatEnd(results: readonly ChatResult[], engine: ChatEngine, output: readonly object[]): object {
  const [{ finishReason }] = results[0].choices;
  const isComplete = finishReason !== "length";
  const { prompt, cached, completion } = countTokens(results);
  return {
    model: engine.modelName,
    status: isComplete ? "completed" : "incomplete",
    completed_at: isComplete ? unixTime() : null,
    incomplete_details: isComplete ? null : { reason: "max_output_tokens" },
    output,
    usage: {
      input_tokens: prompt,
      input_tokens_details: { cached_tokens: cached },
      output_tokens: completion,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: prompt + completion,
    },
  };
}

/** Returns the items of a finished choice. */
export function formatOutput({ text, toolCalls }: ChatChoice, names: CalledNames): object[] {
  const calls = toolCalls.map((call) => formatCall(call, createId("fc_"), names));
  return text === "" && calls.length > 0 ? calls : [formatMessage(createId("msg_"), text), ...calls];
}

/** Writes a response as the events of OpenAI's Responses API. */
export class ResponseStream implements StreamEncoder {
  private readonly output: object[] = [];
  private sequence = 0;
  /** The message that is being written. */
  private message: { readonly id: string; text: string } | undefined;

  constructor(
    private readonly base: object,
    private readonly engine: ChatEngine,
    private readonly names: CalledNames,
  ) {}

  start(): readonly ServerEvent[] {
    const response = { ...this.base, model: this.engine.modelName, status: "in_progress", output: [], usage: null };
    return [this.event("response.created", { response }), this.event("response.in_progress", { response })];
  }

  delta({ text, toolCall }: ChatDelta): readonly ServerEvent[] {
    if (text === undefined) return [...this.closeMessage(), ...this.writeCall(toolCall!)];
    const events = this.message === undefined ? this.openMessage() : [];
    this.message!.text += text;
    return [...events, this.partEvent("response.output_text.delta", { delta: text, logprobs: [] })];
  }

  end(results: readonly ChatResult[]): readonly ServerEvent[] {
    const events = this.output.length === 0 && this.message === undefined ? this.openMessage() : [];
    events.push(...this.closeMessage());
    const response = { ...this.base, ...formatEnd(results, this.engine, this.output) };
    const isComplete = results[0].choices[0].finishReason !== "length";
    return [...events, this.event(isComplete ? "response.completed" : "response.incomplete", { response })];
  }

  private openMessage(): ServerEvent[] {
    const id = createId("msg_");
    this.message = { id, text: "" };
    return [
      this.itemEvent("response.output_item.added", formatMessage(id, "", "in_progress")),
      this.partEvent("response.content_part.added", { part: formatText("") }),
    ];
  }

  private closeMessage(): ServerEvent[] {
    const { message } = this;
    if (message === undefined) return [];
    const { id, text } = message;
    const item = formatMessage(id, text);
    const events = [
      this.partEvent("response.output_text.done", { text, logprobs: [] }),
      this.partEvent("response.content_part.done", { part: formatText(text) }),
      this.itemEvent("response.output_item.done", item),
    ];
    this.message = undefined;
    this.output.push(item);
    return events;
  }

  private writeCall(call: ToolCall): ServerEvent[] {
    const id = createId("fc_");
    const item = formatCall(call, id, this.names);
    const fields = { item_id: id, output_index: this.output.length };
    const events = [
      this.itemEvent("response.output_item.added", { ...item, arguments: "", status: "in_progress" }),
      this.event("response.function_call_arguments.delta", { ...fields, delta: call.arguments }),
      this.event("response.function_call_arguments.done", {
        ...fields,
        ...(this.names.get(call.name) ?? { name: call.name }),
        arguments: call.arguments,
      }),
      this.itemEvent("response.output_item.done", item),
    ];
    this.output.push(item);
    return events;
  }

  private itemEvent(type: string, item: object): ServerEvent {
    return this.event(type, { output_index: this.output.length, item });
  }

  /** An event about the text of the message. */
  private partEvent(type: string, fields: object): ServerEvent {
    const { id } = this.message!;
    return this.event(type, { item_id: id, output_index: this.output.length, content_index: 0, ...fields });
  }

  private event(type: string, fields: object): ServerEvent {
    return { event: type, data: JSON.stringify({ type, sequence_number: this.sequence++, ...fields }) };
  }
}
