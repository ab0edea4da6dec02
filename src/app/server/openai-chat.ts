import type { FunctionTool } from "../../rl/tools/index.js";
import * as z from "zod";
import { isJsonObject } from "../../core/json.js";
import type { JsonSchema } from "../../generation/index.js";
import { RESERVED_VARIABLES, type ChatMessage } from "../../models/text/index.js";
import type { ChatRequest } from "./chat-engine.js";
import { JSON_OBJECT_SCHEMA } from "./json-object-schema.js";
import { ChatStream, formatChoice, formatUsage } from "./openai-chat-stream.js";
import { formatOpenAiError, openAiErrorEvent } from "./openai-error.js";
import {
  allowedToolsMode,
  argumentsParser,
  checkToolNames,
  createId,
  ignored,
  invalidField,
  jsonObject,
  MAX_CHOICES_PER_REQUEST,
  listOf,
  MAX_TOOLS,
  MAX_TOP_LOG_PROBS,
  listUnknownFields,
  otherType,
  noBias,
  noPenalty,
  nameToolResults,
  maxTokensField,
  parseVendorBody,
  readAllowedTools,
  readSampling,
  readSeed,
  samplingFields,
  seedField,
  stopField,
  toStopStrings,
  textContent,
  toolName,
  toolParameters,
  toTemplateCall,
  unixTime,
  type WireFormat,
} from "./wire-format.js";

const calledFunction = z.object({ name: z.string(), arguments: z.string().nullish() });
const functionCall = z.object({ id: z.string(), type: z.literal("function").nullish(), function: calledFunction });
const customCall = z.object({
  id: z.string(),
  type: z.literal("custom"),
  custom: z.object({ name: z.string(), input: z.string() }),
});
const continuedElsewhere = z.literal(false, "is not supported; use continue_final_message of the request").nullish();

const message = z.looseObject({
  role: z.enum(["system", "developer", "user", "assistant", "tool", "function"]),
  content: textContent.nullish(),
  name: z.string().nullish(),
  tool_calls: listOf(z.union([functionCall, customCall])).nullish(),
  tool_call_id: z.string().nullish(),
  /** What the role "function" answers, before there were tools. */
  function_call: calledFunction.nullish(),
  /** Names of other servers for the thinking before an answer. */
  reasoning_content: z.string().nullish(),
  reasoning: z.string().nullish(),
  refusal: z.string().nullish(),
  audio: z.null("is not supported; send its transcript as content").optional(),
  /** Names of other servers for continue_final_message. */
  prefix: continuedElsewhere,
  partial: continuedElsewhere,
  id: ignored,
  annotations: ignored,
});

const toolFunction = z.looseObject({
  name: toolName,
  description: z.string().nullish(),
  parameters: toolParameters,
  strict: ignored,
});
const functionTool = z.looseObject({
  type: z.literal("function", "only function tools are supported"),
  function: toolFunction,
});

const functionChoice = z.object({ type: z.literal("function"), function: z.object({ name: z.string() }) });
const toolChoice = z.discriminatedUnion(
  "type",
  [
    functionChoice,
    z.object({
      type: z.literal("allowed_tools"),
      allowed_tools: z.object({
        mode: allowedToolsMode,
        tools: listOf(z.union([functionChoice, z.object({ type: otherType })]), { min: 1, max: MAX_TOOLS }),
      }),
    }),
  ],
  'must be "function" or "allowed_tools"',
);

const schemaFormat = z.looseObject({
  name: z.string().nullish(),
  schema: jsonObject,
  description: ignored,
  strict: ignored,
});
const responseFormat = z.discriminatedUnion("type", [
  z.object({ type: z.literal("text") }),
  // llama.cpp's schema of an object.
  z.object({ type: z.literal("json_object"), schema: jsonObject.nullish() }),
  z.object({ type: z.literal("json_schema"), json_schema: schemaFormat }),
]);

/** Options of a stream; an obfuscation of its length is not sent. */
export const streamOptions = z.looseObject({ include_usage: z.boolean().nullish(), include_obfuscation: ignored });

/** vLLM's fields of the prompt, and of its repetition in the answer. */
const promptFields = {
  chat_template_kwargs: jsonObject.nullish(),
  continue_final_message: z.boolean().nullish(),
  add_generation_prompt: z.boolean().nullish(),
  echo: z.boolean().nullish(),
};

export const chatBody = z.strictObject({
  model: z.string().nullish(),
  messages: listOf(message, { min: 1 }),
  tools: listOf(functionTool, { max: MAX_TOOLS }).nullish(),
  tool_choice: z.union([z.enum(["auto", "none", "required"]), toolChoice]).nullish(),
  parallel_tool_calls: z.boolean().nullish(),
  response_format: responseFormat.nullish(),
  ...promptFields,
  ...samplingFields,
  frequency_penalty: noPenalty,
  presence_penalty: noPenalty,
  logit_bias: noBias,
  max_tokens: maxTokensField.nullish(),
  max_completion_tokens: maxTokensField.nullish(),
  stop: stopField,
  seed: seedField,
  n: z.number().int().min(1).max(MAX_CHOICES_PER_REQUEST).nullish(),
  logprobs: z.boolean().nullish(),
  top_logprobs: z.number().int().min(0).max(MAX_TOP_LOG_PROBS).nullish(),
  stream: z.boolean().nullish(),
  stream_options: streamOptions.nullish(),
  modalities: listOf(z.literal("text", "only text is supported")).nullish(),
  user: ignored,
  store: ignored,
  metadata: ignored,
  service_tier: ignored,
  safety_identifier: ignored,
  prompt_cache_key: ignored,
  prompt_cache_retention: ignored,
  reasoning_effort: ignored,
  verbosity: ignored,
});

type ChatBody = z.infer<typeof chatBody>;

/** POST /v1/chat/completions of OpenAI. */
export const openAiChat: WireFormat = {
  path: "/chat/completions",
  parse(body) {
    const { parsed, ignoredFields } = parseVendorBody(chatBody, body, ["function"]);
    const hasLogProbs = parsed.logprobs === true;
    const echoed = readEchoed(parsed);
    const base = { id: createId("chatcmpl-"), created: unixTime() };
    return {
      model: parsed.model ?? undefined,
      isStream: parsed.stream === true,
      ignoredFields: [...ignoredFields, ...listNestedUnknown(parsed)],
      requests: [toChatRequest(parsed)],
      respond: (results, engine) => ({
        ...base,
        object: "chat.completion",
        model: engine.modelName,
        choices: results[0].choices.map((choice) => formatChoice(choice, engine, hasLogProbs, echoed)),
        usage: formatUsage(results),
      }),
      stream: (engine) =>
        new ChatStream(base, engine, {
          hasLogProbs,
          echoed,
          includesUsage: parsed.stream_options?.include_usage === true,
        }),
    };
  },
  formatError: formatOpenAiError,
  errorEvent: openAiErrorEvent,
};

/** Returns the unknown fields of the parts of a body. */
function listNestedUnknown(body: ChatBody): readonly string[] {
  const tools = body.tools ?? [];
  const { response_format: format } = body;
  return [
    ...listUnknownFields("messages", body.messages, message),
    ...listUnknownFields("tools", tools, functionTool),
    ...listUnknownFields(
      "tools",
      tools.map((tool) => tool.function),
      toolFunction,
      ".function",
    ),
    ...listUnknownFields("stream_options", body.stream_options, streamOptions),
    ...(format?.type === "json_schema"
      ? listUnknownFields("response_format.json_schema", format.json_schema, schemaFormat)
      : []),
  ];
}

function toChatRequest(body: ChatBody): ChatRequest {
  if (typeof body.top_logprobs === "number" && body.logprobs !== true)
    throw invalidField("top_logprobs", "needs logprobs: true");
  const tools = (body.tools ?? []).map(({ function: { name, description, parameters } }) => ({
    name,
    description: description ?? undefined,
    parameters,
  }));
  checkToolNames(tools);
  const parseArguments = argumentsParser();
  return {
    input: nameToolResults(body.messages.map((_, i) => toTemplateMessage(body.messages, i, parseArguments))),
    tools,
    variables: readVariables(body.chat_template_kwargs),
    ...readEnding(body),
    ...readToolChoice(body.tool_choice, tools),
    parallelToolCalls: body.parallel_tool_calls ?? true,
    jsonSchema: readResponseFormat(body.response_format),
    sampling: readSampling(body),
    maxNewTokens: body.max_completion_tokens ?? body.max_tokens ?? undefined,
    stop: toStopStrings(body.stop),
    seed: readSeed(body.seed),
    n: body.n ?? 1,
    topLogProbs: body.logprobs === true ? (body.top_logprobs ?? 0) : undefined,
  };
}

type Message = ChatBody["messages"][number];

function toTemplateMessage(
  messages: readonly Message[],
  index: number,
  parseArguments: (text: string) => unknown,
): ChatMessage {
  const message = messages[index];
  const { role, content, refusal, name } = message;
  const callId = role === "function" ? findFunctionCall(messages, index) : message.tool_call_id;
  const isResult = role === "tool" || role === "function";
  if (isResult && typeof callId !== "string") throw invalidField(`messages[${index}].tool_call_id`, "is missing");
  const reasoning = message.reasoning_content ?? message.reasoning;
  const calls = readCalls(message, index, parseArguments);
  const texts = [content, refusal].filter((text) => typeof text === "string" && text !== "");
  return {
    role: role === "developer" ? "system" : isResult ? "tool" : role,
    content: texts.join("\n"),
    ...(typeof name === "string" && { name }),
    ...(typeof callId === "string" && { tool_call_id: callId }),
    ...(typeof reasoning === "string" && { reasoning_content: reasoning }),
    ...(calls.length > 0 && { tool_calls: calls }),
  };
}

/** Returns the calls of a message; that of a custom tool is a call with an object. */
function readCalls(
  { tool_calls: calls, function_call: legacy }: Message,
  index: number,
  parseArguments: (text: string) => unknown,
): object[] {
  const own = (calls ?? []).map((call) =>
    call.type === "custom"
      ? toTemplateCall(call.id, call.custom.name, { input: call.custom.input })
      : toTemplateCall(call.id, call.function.name, parseArguments(call.function.arguments ?? "")),
  );
  if (legacy === null || legacy === undefined) return own;
  return [...own, toTemplateCall(functionCallId(index), legacy.name, parseArguments(legacy.arguments ?? ""))];
}

/** The id of a message's function call, which had none: nine digits, as for Mistral's templates. */
const functionCallId = (index: number) => String(index).padStart(9, "0");

/** Returns the id of the call that a message of the role "function" answers. */
function findFunctionCall(messages: readonly Message[], index: number): string {
  const call = messages.slice(0, index).findLastIndex((each) => isJsonObject(each.function_call));
  if (call < 0) throw invalidField(`messages[${index}].role`, "a function message needs an earlier function_call");
  return functionCallId(call);
}

function readVariables(variables: ChatBody["chat_template_kwargs"]): ChatRequest["variables"] {
  const reserved = RESERVED_VARIABLES.find((name) => name in (variables ?? {}));
  if (reserved !== undefined) throw invalidField("chat_template_kwargs", `must not have "${reserved}"`);
  return variables ?? undefined;
}

/** Reads how the prompt ends: vLLM has both fields true at most one at a time. */
function readEnding({
  continue_final_message: continues,
  add_generation_prompt: begins,
}: ChatBody): Pick<ChatRequest, "continueFinalMessage" | "addGenerationPrompt"> {
  if (continues === true && begins === true)
    throw invalidField("continue_final_message", "must not be true if add_generation_prompt is true");
  return { continueFinalMessage: continues ?? undefined, addGenerationPrompt: begins ?? undefined };
}

/** Returns the text of the last message, if it is the assistant's and the answer repeats it. */
function readEchoed({ echo, messages }: ChatBody): string {
  const last = messages.at(-1)!;
  return echo === true && last.role === "assistant" ? (last.content ?? "") : "";
}

function readToolChoice(choice: ChatBody["tool_choice"], tools: readonly FunctionTool[]) {
  if (typeof choice !== "object" || choice === null) return { toolChoice: choice ?? "auto" };
  if (choice.type === "function") return { toolChoice: { name: choice.function.name } };
  const { mode, tools: allowed } = choice.allowed_tools;
  const names = allowed.map((each) => ("function" in each ? each.function.name : undefined));
  return readAllowedTools(mode, names, tools);
}

function readResponseFormat(format: ChatBody["response_format"]): JsonSchema | undefined {
  if (format?.type === "json_object") return format.schema ?? JSON_OBJECT_SCHEMA;
  return format?.type === "json_schema" ? format.json_schema.schema : undefined;
}
