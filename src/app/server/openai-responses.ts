import * as z from "zod";
import { asJsonObject } from "../../core/json.js";
import type { ChatMessage } from "../../models/text/index.js";
import type { ChatEngine, ChatRequest, ToolChoice } from "./chat-engine.js";
import { JSON_OBJECT_SCHEMA } from "./json-object-schema.js";
import { formatOpenAiError } from "./openai-error.js";
import { formatEnd, formatOutput, ResponseStream } from "./openai-response-stream.js";
import {
  argumentsParser,
  checkToolNames,
  createId,
  ignored,
  jsonObject,
  listOf,
  MAX_TOOLS,
  nameToolResults,
  maxTokensField,
  parseVendorBody,
  readSampling,
  readSeed,
  samplingFields,
  seedField,
  textContent,
  toolName,
  toolParameters,
  toTemplateCall,
  unixTime,
  type WireFormat,
} from "./wire-format.js";

const message = z.object({
  type: z.literal("message").optional(),
  role: z.enum(["system", "developer", "user", "assistant"]),
  content: textContent,
});
const functionCall = z.object({
  type: z.literal("function_call"),
  call_id: z.string(),
  name: z.string(),
  arguments: z.string(),
});
const customCall = z.object({
  type: z.literal("custom_tool_call"),
  call_id: z.string(),
  name: z.string(),
  input: z.string(),
});
const shellCall = z.object({ type: z.literal("local_shell_call"), call_id: z.string(), action: jsonObject });
const callOutput = z.object({
  type: z.enum(["function_call_output", "custom_tool_call_output", "local_shell_call_output"]),
  call_id: z.string(),
  output: textContent,
});
/** What only the vendor's models read, and what they have searched. */
const otherItem = z.object({ type: z.enum(["reasoning", "web_search_call"]) });
const inputItem = z.union([functionCall, customCall, shellCall, callOutput, otherItem, message], {
  error: "must be a message, reasoning, or a call of a function or custom tool or its output",
});
type InputItem = z.infer<typeof inputItem>;

const functionTool = z.object({
  type: z.literal("function", "only function tools are supported"),
  name: toolName,
  description: z.string().nullish(),
  parameters: toolParameters,
});

const format = z.discriminatedUnion("type", [
  z.object({ type: z.literal("text") }),
  z.object({ type: z.literal("json_object") }),
  z.looseObject({ type: z.literal("json_schema"), schema: jsonObject }),
]);

export const responseBody = z.strictObject({
  model: z.string().nullish(),
  input: z.union([z.string(), listOf(inputItem, { min: 1 })]),
  instructions: z.string().nullish(),
  tools: listOf(functionTool, { max: MAX_TOOLS }).nullish(),
  tool_choice: z
    .union([z.enum(["auto", "none", "required"]), z.object({ type: z.literal("function"), name: z.string() })])
    .nullish(),
  parallel_tool_calls: z.boolean().nullish(),
  text: z.looseObject({ format: format.nullish() }).nullish(),
  ...samplingFields,
  seed: seedField,
  max_output_tokens: maxTokensField.nullish(),
  stream: z.boolean().nullish(),
  previous_response_id: z.null("is not supported: send the conversation as input").optional(),
  conversation: z.null("is not supported: send the conversation as input").optional(),
  background: z.literal(false, "is not supported").nullish(),
  truncation: z.literal("disabled", "is not supported").nullish(),
  prompt: z.null("is not supported").optional(),
  include: ignored,
  metadata: ignored,
  reasoning: ignored,
  safety_identifier: ignored,
  prompt_cache_key: ignored,
  prompt_cache_retention: ignored,
  service_tier: ignored,
  store: ignored,
  stream_options: ignored,
  top_logprobs: z.literal(0, "is not supported; use /v1/chat/completions").nullish(),
  user: ignored,
  max_tool_calls: ignored,
});

type ResponseBody = z.infer<typeof responseBody>;

/**
 * POST /v1/responses of OpenAI, without stored responses: each request has the whole conversation.
 */
export const openAiResponses: WireFormat = {
  path: "/responses",
  parse(body) {
    const { parsed, ignoredFields } = parseVendorBody(responseBody, body, "function");
    const base = describeRequest(parsed);
    const describe = ({ defaultSampling }: ChatEngine) => ({
      ...base,
      temperature: parsed.temperature ?? defaultSampling?.temperature ?? 1,
      top_p: parsed.top_p ?? defaultSampling?.topP ?? 1,
    });
    return {
      model: parsed.model ?? undefined,
      isStream: parsed.stream === true,
      ignoredFields,
      requests: [toChatRequest(parsed)],
      respond: (results, engine) => ({
        ...describe(engine),
        ...formatEnd(results, engine, formatOutput(results[0].choices[0])),
      }),
      stream: (engine) => new ResponseStream(describe(engine), engine),
    };
  },
  formatError: formatOpenAiError,
  errorEvent: ({ message, code, param }) => {
    const fields = { type: "error", message, code: code ?? null, param: param ?? null, sequence_number: 0 };
    return { event: "error", data: JSON.stringify(fields) };
  },
};

function toChatRequest(body: ResponseBody): ChatRequest {
  const tools = (body.tools ?? []).map(({ name, description, parameters }) => ({
    name,
    description: description ?? undefined,
    parameters,
  }));
  checkToolNames(tools);
  const { instructions, tool_choice: choice } = body;
  const messages = toTemplateMessages(body.input);
  return {
    input: nameToolResults(
      typeof instructions === "string" ? [{ role: "system", content: instructions }, ...messages] : messages,
    ),
    tools,
    toolChoice: readToolChoice(choice),
    parallelToolCalls: body.parallel_tool_calls ?? true,
    jsonSchema: readFormat(body.text?.format),
    sampling: readSampling(body),
    maxNewTokens: body.max_output_tokens ?? undefined,
    seed: readSeed(body.seed),
  };
}

function readFormat(textFormat: z.infer<typeof format> | null | undefined): ChatRequest["jsonSchema"] {
  if (textFormat?.type === "json_object") return JSON_OBJECT_SCHEMA;
  return textFormat?.type === "json_schema" ? textFormat.schema : undefined;
}

function readToolChoice(choice: ResponseBody["tool_choice"]): ToolChoice {
  return typeof choice === "object" && choice !== null ? { name: choice.name } : (choice ?? "auto");
}

/**
 * Converts items to messages; consecutive calls, and the text before them, are one message of the
 * assistant.
 */
function toTemplateMessages(input: ResponseBody["input"]): ChatMessage[] {
  if (typeof input === "string") return [{ role: "user", content: input }];
  const messages: ChatMessage[] = [];
  const parseArguments = argumentsParser();
  input.forEach((item) => {
    if (item.type === "reasoning" || item.type === "web_search_call") return;
    const call = readCall(item, parseArguments);
    if ("output" in item) {
      messages.push({ role: "tool", tool_call_id: item.call_id, content: item.output });
    } else if (call !== undefined) {
      const last = messages.at(-1);
      const isAssistant = last?.role === "assistant";
      const calls = isAssistant ? ((last.tool_calls ?? []) as readonly unknown[]) : [];
      const content = isAssistant ? last.content : "";
      messages.splice(messages.length - (isAssistant ? 1 : 0), 1, {
        role: "assistant",
        content,
        tool_calls: [...calls, call],
      });
    } else if ("role" in item) {
      messages.push({ role: item.role === "developer" ? "system" : item.role, content: item.content });
    }
  });
  return messages;
}

/** Returns the call of an item; those of custom tools and of the shell are calls with an object. */
function readCall(item: InputItem, parseArguments: (text: string) => unknown): object | undefined {
  switch (item.type) {
    case "function_call":
      return toTemplateCall(item.call_id, item.name, parseArguments(item.arguments));
    case "custom_tool_call":
      return toTemplateCall(item.call_id, item.name, { input: item.input });
    case "local_shell_call":
      return toTemplateCall(item.call_id, "local_shell", item.action);
    default:
      return undefined;
  }
}

/** Returns the fields of a response that repeat its request: all that Open Responses requires. */
function describeRequest(body: ResponseBody) {
  const orNull = (value: unknown) => value ?? null;
  return {
    id: createId("resp_"),
    object: "response",
    created_at: unixTime(),
    completed_at: null,
    error: null,
    incomplete_details: null,
    instructions: orNull(body.instructions),
    max_output_tokens: orNull(body.max_output_tokens),
    max_tool_calls: orNull(body.max_tool_calls),
    metadata: body.metadata ?? {},
    parallel_tool_calls: body.parallel_tool_calls ?? true,
    previous_response_id: null,
    store: false,
    background: false,
    service_tier: "default",
    presence_penalty: 0,
    frequency_penalty: 0,
    top_logprobs: 0,
    reasoning: { effort: null, summary: null, ...asJsonObject(body.reasoning) },
    text: { ...body.text, format: describeFormat(body.text?.format) },
    tool_choice: body.tool_choice ?? "auto",
    tools: (body.tools ?? []).map((tool) => ({
      type: tool.type,
      name: tool.name,
      description: orNull(tool.description),
      parameters: tool.parameters,
      strict: true,
    })),
    truncation: "disabled",
    user: orNull(body.user),
    safety_identifier: orNull(body.safety_identifier),
    prompt_cache_key: orNull(body.prompt_cache_key),
  };
}

function describeFormat(textFormat: z.infer<typeof format> | null | undefined): object {
  if (textFormat?.type !== "json_schema") return textFormat ?? { type: "text" };
  return { description: null, strict: true, ...textFormat };
}
