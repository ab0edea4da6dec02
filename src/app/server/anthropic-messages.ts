import * as z from "zod";
import { generationSettings } from "../../generation/index.js";
import { settingField } from "./setting-field.js";
import { asJsonObject } from "../../core/json.js";
import { parseLosslessJson } from "../../core/lossless-json.js";
import type { ChatMessage } from "../../models/text/index.js";
import type { ChatChoice, ChatDelta, ChatEngine, ChatRequest, ChatResult, ToolChoice } from "./chat-engine.js";
import type { ToolCall } from "../../rl/tools/index.js";
import type { RequestError } from "./request-error.js";
import {
  checkToolNames,
  countTokens,
  createId,
  ignored,
  jsonObject,
  listOf,
  listUnknownFields,
  MAX_TOOLS,
  nameToolResults,
  maxTokensField,
  parseVendorBody,
  samplingFields,
  readSampling,
  textContent,
  toolName,
  toolParameters,
  toTemplateCall,
  type ServerEvent,
  type StreamEncoder,
  type WireFormat,
  type WireRequest,
} from "./wire-format.js";

const text = z.object({ type: z.literal("text"), text: z.string() });
const toolUse = z.object({
  type: z.literal("tool_use"),
  id: z.string(),
  name: z.string(),
  input: jsonObject,
});
const toolResult = z.object({
  type: z.literal("tool_result"),
  tool_use_id: z.string(),
  content: textContent.nullish(),
  is_error: z.boolean().nullish(),
});
const thinking = z.object({ type: z.enum(["thinking", "redacted_thinking"]), thinking: z.string().nullish() });
const block = z.discriminatedUnion("type", [text, toolUse, toolResult, thinking], {
  error: "only text, tool_use and tool_result are supported",
});

const tool = z.looseObject({
  type: z.literal("custom", "only custom tools are supported").nullish(),
  name: toolName,
  description: z.string().nullish(),
  input_schema: toolParameters,
  cache_control: ignored,
  strict: ignored,
  eager_input_streaming: ignored,
});

const parallelField = { disable_parallel_tool_use: z.boolean().nullish() };
const toolChoice = z.discriminatedUnion("type", [
  z.object({ type: z.literal("auto"), ...parallelField }),
  z.object({ type: z.literal("any"), ...parallelField }),
  z.object({ type: z.literal("none") }),
  z.object({ type: z.literal("tool"), name: z.string(), ...parallelField }),
]);

const outputFormat = z.object({ type: z.literal("json_schema"), schema: jsonObject });

const outputConfig = z.looseObject({ format: outputFormat.nullish(), effort: ignored });

export const messagesBody = z.strictObject({
  model: z.string().nullish(),
  max_tokens: maxTokensField,
  messages: listOf(
    z.object({ role: z.enum(["user", "assistant", "system"]), content: z.union([z.string(), listOf(block)]) }),
    { min: 1 },
  ),
  system: textContent.nullish(),
  tools: listOf(tool, { max: MAX_TOOLS }).nullish(),
  tool_choice: toolChoice.nullish(),
  output_format: outputFormat.nullish(),
  output_config: outputConfig.nullish(),
  temperature: settingField({ ...generationSettings.temperature, max: 1 }).nullish(),
  top_p: samplingFields.top_p,
  top_k: samplingFields.top_k,
  stop_sequences: listOf(z.string().min(1), { max: 16 }).nullish(),
  stream: z.boolean().nullish(),
  thinking: ignored,
  metadata: ignored,
  service_tier: ignored,
  cache_control: ignored,
});

type MessagesBody = z.infer<typeof messagesBody>;

const ERROR_TYPES: Readonly<Record<number, string>> = {
  401: "authentication_error",
  403: "permission_error",
  404: "not_found_error",
  413: "request_too_large",
  429: "rate_limit_error",
  504: "timeout_error",
};

function formatError({ status, message }: RequestError): object {
  const type = ERROR_TYPES[status] ?? (status < 500 ? "invalid_request_error" : "api_error");
  return { type: "error", error: { type, message } };
}

/** POST /v1/messages of Anthropic. */
export const anthropicMessages: WireFormat = {
  path: "/messages",
  parse(body) {
    const { parsed, ignoredFields } = parseVendorBody(messagesBody, body, ["custom"]);
    const base = { id: createId("msg_"), type: "message", role: "assistant" };
    return {
      model: parsed.model ?? undefined,
      isStream: parsed.stream === true,
      ignoredFields: [...ignoredFields, ...listNestedUnknown(parsed), ...(isThinking(parsed) ? ["thinking"] : [])],
      requests: [toChatRequest(parsed)],
      respond: (results, engine) => ({
        ...base,
        model: engine.modelName,
        content: formatContent(results[0].choices[0]),
        ...formatEnd(results[0].choices[0]),
        usage: formatUsage(results),
      }),
      stream: (engine) => new MessageStream(base, engine),
    };
  },
  formatError,
  errorEvent: (error) => ({ event: "error", data: JSON.stringify(formatError(error)) }),
};

/** Returns the unknown fields of the parts of a body. */
function listNestedUnknown({ tools, output_config: config }: Pick<MessagesBody, "tools" | "output_config">) {
  return [...listUnknownFields("tools", tools, tool), ...listUnknownFields("output_config", config, outputConfig)];
}

/** Whether a request asks for thinking; what a model here thinks is part of its text. */
function isThinking({ thinking }: MessagesBody): boolean {
  const type = asJsonObject(thinking)?.type;
  return type !== undefined && type !== "disabled";
}

/** The body of POST /v1/messages/count_tokens. */
const countBody = messagesBody.extend({ max_tokens: maxTokensField.optional() });

/**
 * POST /v1/messages/count_tokens of Anthropic: the request whose prompt is counted, and its model.
 */
export function parseCountTokens(
  body: unknown,
): Pick<WireRequest, "model" | "ignoredFields"> & { request: ChatRequest } {
  const { parsed, ignoredFields } = parseVendorBody(countBody, body, ["custom"]);
  return {
    model: parsed.model ?? undefined,
    ignoredFields: [...ignoredFields, ...listNestedUnknown(parsed)],
    request: toChatRequest({ ...parsed, max_tokens: parsed.max_tokens ?? 1 }),
  };
}

function toChatRequest(body: MessagesBody): ChatRequest {
  const tools = (body.tools ?? []).map(({ name, description, input_schema: parameters }) => ({
    name,
    description: description ?? undefined,
    parameters,
  }));
  checkToolNames(tools);
  const { tool_choice: choice, system } = body;
  const messages = body.messages.flatMap(({ role, content }) => toTemplateMessages(role, content));
  const isParallel =
    choice === null || choice === undefined || choice.type === "none" || choice.disable_parallel_tool_use !== true;
  return {
    input: nameToolResults(typeof system === "string" ? [{ role: "system", content: system }, ...messages] : messages),
    tools,
    toolChoice: readToolChoice(choice),
    parallelToolCalls: isParallel,
    continueFinalMessage: isPrefilled(messages.at(-1)),
    jsonSchema: (body.output_config?.format ?? body.output_format)?.schema,
    sampling: readSampling(body),
    maxNewTokens: body.max_tokens,
    stop: body.stop_sequences ?? [],
  };
}

/** Whether the last message is the beginning of an answer, which the completion continues. */
function isPrefilled(last: ChatMessage | undefined): boolean {
  return last?.role === "assistant" && last.content !== "" && last.tool_calls === undefined;
}

function readToolChoice(choice: MessagesBody["tool_choice"]): ToolChoice {
  if (choice === null || choice === undefined) return "auto";
  if (choice.type === "tool") return { name: choice.name };
  return choice.type === "any" ? "required" : choice.type;
}

/** Splits a message: tool results are separate messages in chat templates. */
function toTemplateMessages(role: string, content: MessagesBody["messages"][number]["content"]): ChatMessage[] {
  if (typeof content === "string") return [{ role, content }];
  const results = content.flatMap((part) =>
    part.type === "tool_result" ? [{ role: "tool", tool_call_id: part.tool_use_id, content: part.content ?? "" }] : [],
  );
  const joined = content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("");
  const calls = content.flatMap((part) =>
    part.type === "tool_use" ? [toTemplateCall(part.id, part.name, part.input)] : [],
  );
  const thought = content.flatMap((part) => (part.type === "thinking" ? [part.thinking ?? ""] : [])).join("\n");
  const message = { role, content: joined, ...(thought !== "" && { reasoning_content: thought }) };
  if (calls.length > 0) return [{ ...message, tool_calls: calls }];
  return joined === "" && results.length > 0 ? results : [...results, message];
}

function formatContent({ text, toolCalls }: ChatChoice): object[] {
  const calls = toolCalls.map(({ id, name, arguments: args }) => ({
    type: "tool_use",
    id,
    name,
    input: parseLosslessJson(args),
  }));
  return text === "" ? calls : [{ type: "text", text }, ...calls];
}

function formatEnd({ finishReason, stopString }: ChatChoice): object {
  const reasons = { stop: "end_turn", aborted: "end_turn", length: "max_tokens", tool_calls: "tool_use" };
  const reason = stopString === undefined ? reasons[finishReason] : "stop_sequence";
  return { stop_reason: reason, stop_sequence: stopString ?? null };
}

function formatUsage(results: readonly ChatResult[]): object {
  const { prompt, cached, completion } = countTokens(results);
  return {
    input_tokens: prompt - cached,
    cache_read_input_tokens: cached,
    cache_creation_input_tokens: 0,
    output_tokens: completion,
  };
}

class MessageStream implements StreamEncoder {
  private blockCount = 0;
  private isTextOpen = false;

  constructor(
    private readonly base: object,
    private readonly engine: ChatEngine,
  ) {}

  start(promptTokens: number): readonly ServerEvent[] {
    const usage = { input_tokens: promptTokens, output_tokens: 0 };
    const end = { stop_reason: null, stop_sequence: null };
    const message = { ...this.base, model: this.engine.modelName, content: [], ...end, usage };
    return [event("message_start", { message })];
  }

  delta({ text, toolCall }: ChatDelta): readonly ServerEvent[] {
    if (text === undefined) return [...this.closeText(), ...this.callEvents(toolCall!)];
    const events = this.isTextOpen ? [] : [this.startBlock({ type: "text", text: "" })];
    this.isTextOpen = true;
    return [...events, this.blockDelta({ type: "text_delta", text })];
  }

  end(results: readonly ChatResult[]): readonly ServerEvent[] {
    const [choice] = results[0].choices;
    return [
      ...this.closeText(),
      event("message_delta", { delta: formatEnd(choice), usage: formatUsage(results) }),
      event("message_stop", {}),
    ];
  }

  private callEvents({ id, name, arguments: args }: ToolCall): ServerEvent[] {
    return [
      this.startBlock({ type: "tool_use", id, name, input: {} }),
      this.blockDelta({ type: "input_json_delta", partial_json: args }),
      this.stopBlock(),
    ];
  }

  private closeText(): ServerEvent[] {
    if (!this.isTextOpen) return [];
    this.isTextOpen = false;
    return [this.stopBlock()];
  }

  private startBlock(block: object): ServerEvent {
    return event("content_block_start", { index: this.blockCount++, content_block: block });
  }

  private blockDelta(delta: object): ServerEvent {
    return event("content_block_delta", { index: this.blockCount - 1, delta });
  }

  private stopBlock(): ServerEvent {
    return event("content_block_stop", { index: this.blockCount - 1 });
  }
}

const event = (type: string, fields: object): ServerEvent => ({
  event: type,
  data: JSON.stringify({ type, ...fields }),
});
