import * as z from "zod";
import { asJsonObject } from "../../core/json.js";
import type { FunctionTool } from "../../rl/tools/index.js";
import type { ChatEngine, ChatRequest } from "./chat-engine.js";
import { JSON_OBJECT_SCHEMA } from "./json-object-schema.js";
import { formatOpenAiError } from "./openai-error.js";
import { checkItemTypes, inputItem, isUnread, qualifyName, toTemplateMessages } from "./openai-response-items.js";
import { formatEnd, formatOutput, ResponseStream, type CalledNames } from "./openai-response-stream.js";
import {
  allowedToolsMode,
  checkToolNames,
  createId,
  ignored,
  jsonObject,
  listOf,
  MAX_TOOLS,
  listUnknownFields,
  otherType,
  nameToolResults,
  maxTokensField,
  parseVendorBody,
  readAllowedTools,
  readSampling,
  readSeed,
  samplingFields,
  seedField,
  toolName,
  toolParameters,
  unixTime,
  type WireFormat,
} from "./wire-format.js";

const functionTool = z.looseObject({
  type: z.literal("function", "only function tools are supported"),
  name: toolName,
  description: z.string().nullish(),
  parameters: toolParameters,
  strict: z.boolean().nullish(),
});
/** A group of tools, whose calls have its name. */
const namespace = z.looseObject({
  type: z.literal("namespace"),
  name: toolName,
  description: z.string().nullish(),
  tools: listOf(z.union([functionTool, z.object({ type: otherType })]), { max: MAX_TOOLS }),
});

const schemaFormat = z.looseObject({
  type: z.literal("json_schema"),
  schema: jsonObject,
  name: ignored,
  description: ignored,
  strict: ignored,
});
const format = z.discriminatedUnion("type", [
  z.object({ type: z.literal("text") }),
  z.object({ type: z.literal("json_object") }),
  schemaFormat,
]);
const textOptions = z.looseObject({ format: format.nullish(), verbosity: ignored });

const functionChoice = z.object({
  type: z.literal("function"),
  name: z.string(),
  namespace: z.string().nullish(),
});
const toolChoice = z.discriminatedUnion(
  "type",
  [
    functionChoice,
    z.object({
      type: z.literal("allowed_tools"),
      mode: allowedToolsMode,
      tools: listOf(z.union([functionChoice, z.object({ type: otherType })]), { min: 1, max: MAX_TOOLS }),
    }),
  ],
  'must be "function" or "allowed_tools"',
);

export const responseBody = z.strictObject({
  model: z.string().nullish(),
  input: z.union([z.string(), listOf(inputItem, { min: 1 })]),
  instructions: z.string().nullish(),
  tools: listOf(z.discriminatedUnion("type", [functionTool, namespace]), { max: MAX_TOOLS }).nullish(),
  tool_choice: z.union([z.enum(["auto", "none", "required"]), toolChoice]).nullish(),
  parallel_tool_calls: z.boolean().nullish(),
  text: textOptions.nullish(),
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
    checkItemTypes(asJsonObject(body)?.input);
    const { parsed, ignoredFields } = parseVendorBody(responseBody, body, ["function", "namespace"]);
    const base = describeRequest(parsed);
    const names = listCalledNames(parsed);
    const describe = ({ defaultSampling }: ChatEngine) => ({
      ...base,
      temperature: parsed.temperature ?? defaultSampling?.temperature ?? 1,
      top_p: parsed.top_p ?? defaultSampling?.topP ?? 1,
    });
    return {
      model: parsed.model ?? undefined,
      isStream: parsed.stream === true,
      ignoredFields: [...ignoredFields, ...listNestedUnknown(parsed)],
      requests: [toChatRequest(parsed)],
      respond: (results, engine) => ({
        ...describe(engine),
        ...formatEnd(results, engine, formatOutput(results[0].choices[0], names)),
      }),
      stream: (engine) => new ResponseStream(describe(engine), engine, names),
    };
  },
  formatError: formatOpenAiError,
  errorEvent: ({ message, code, param }) => {
    const fields = { type: "error", message, code: code ?? null, param: param ?? null, sequence_number: 0 };
    return { event: "error", data: JSON.stringify(fields) };
  },
};

type Namespace = z.infer<typeof namespace>;

/** The functions of a namespace, with their names in the prompt. */
function listNamespaceTools({ name, description, tools }: Namespace) {
  return tools.filter(isFunction).map((tool) => ({
    ...tool,
    name: qualifyName(tool.name, name),
    description: [description, tool.description].filter(Boolean).join("\n"),
  }));
}

const isFunction = (tool: Namespace["tools"][number]): tool is z.infer<typeof functionTool> => tool.type === "function";

/** Returns the names and namespaces of the tools that have one, by their names in the prompt. */
function listCalledNames({ tools }: ResponseBody): CalledNames {
  const spaces = (tools ?? []).filter((tool) => tool.type === "namespace");
  return new Map(
    spaces.flatMap((space) =>
      space.tools
        .filter(isFunction)
        .map(({ name }) => [qualifyName(name, space.name), { name, namespace: space.name }] as const),
    ),
  );
}

/** Returns the unknown fields of the parts of a body, and the items that are not read. */
function listNestedUnknown({ input, tools, text }: ResponseBody): readonly string[] {
  const spaces = (tools ?? []).filter((tool) => tool.type === "namespace");
  const inSpaces = spaces.flatMap((space) => space.tools);
  const items = typeof input === "string" ? [] : input.filter((item, i) => isUnread(item, input[i + 1]));
  return [
    ...new Set(items.map(({ type }) => `input.${type}`)),
    ...listUnknownFields("tools", (tools ?? []).filter(isFunction), functionTool),
    ...listUnknownFields("tools", spaces, namespace),
    ...listUnknownFields("tools.tools", inSpaces.filter(isFunction), functionTool),
    ...new Set(inSpaces.filter((tool) => !isFunction(tool)).map(({ type }) => `tools.tools.${type}`)),
    ...listUnknownFields("text", text, textOptions),
    ...(text?.format?.type === "json_schema" ? listUnknownFields("text.format", text.format, schemaFormat) : []),
  ];
}

function toChatRequest(body: ResponseBody): ChatRequest {
  const tools = (body.tools ?? [])
    .flatMap((tool) => (tool.type === "namespace" ? listNamespaceTools(tool) : [tool]))
    .map(({ name, description, parameters }) => ({ name, description: description ?? undefined, parameters }));
  checkToolNames(tools);
  const { instructions, tool_choice: choice } = body;
  const messages = toTemplateMessages(body.input);
  return {
    input: nameToolResults(
      typeof instructions === "string" ? [{ role: "system", content: instructions }, ...messages] : messages,
    ),
    tools,
    ...readToolChoice(choice, tools),
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

function readToolChoice(choice: ResponseBody["tool_choice"], tools: readonly FunctionTool[]) {
  if (typeof choice !== "object" || choice === null) return { toolChoice: choice ?? "auto" };
  if (choice.type === "function") return { toolChoice: { name: qualifyName(choice.name, choice.namespace) } };
  const names = choice.tools.map((each) => ("name" in each ? qualifyName(each.name, each.namespace) : undefined));
  return readAllowedTools(choice.mode, names, tools);
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
    tools: (body.tools ?? []).map(describeTool),
    truncation: "disabled",
    user: orNull(body.user),
    safety_identifier: orNull(body.safety_identifier),
    prompt_cache_key: orNull(body.prompt_cache_key),
  };
}

function describeTool(tool: NonNullable<ResponseBody["tools"]>[number]): object {
  const { type, name, description = null } = tool;
  if (tool.type === "namespace")
    return { type, name, description, tools: tool.tools.filter(isFunction).map(describeTool) };
  const { parameters, strict = true } = tool;
  return { type, name, description, parameters, strict };
}

function describeFormat(textFormat: z.infer<typeof format> | null | undefined): object {
  if (textFormat?.type !== "json_schema") return textFormat ?? { type: "text" };
  return { description: null, strict: true, ...textFormat };
}
