import type { FunctionTool } from "../../rl/tools/index.js";
import * as z from "zod";
import { settingField } from "./setting-field.js";
import { generationSettings, isSchema } from "../../generation/index.js";
import { findMisspelledName, suggestNames } from "../../core/suggest.js";
import { asJsonObject, checkJsonSize, isJsonObject, type JsonObject } from "../../core/json.js";
import { parseLosslessJson } from "../../core/lossless-json.js";
import { findIssue } from "../../core/schema-issue.js";
import type { ChatMessage } from "../../models/text/index.js";
import type { ChatDelta, ChatEngine, ChatRequest, ChatResult } from "./chat-engine.js";
import { MAX_BODY_VALUES } from "./read-json-body.js";
import { RequestError } from "./request-error.js";

/** An event of a stream (SSE). */
export interface ServerEvent {
  readonly event?: string;
  readonly data: string;
}

/** Writes a streamed response as events. */
export interface StreamEncoder {
  /** Called once the prompts are tokenized, with their number of tokens. */
  start(promptTokens: number): readonly ServerEvent[];
  /** `request` is the index of the prompt. */
  delta(delta: ChatDelta, request: number): readonly ServerEvent[];
  end(results: readonly ChatResult[]): readonly ServerEvent[];
}

/** A request as read from its body, and the way its response is written. */
export interface WireRequest {
  readonly model: string | undefined;
  readonly isStream: boolean;
  /** One for each prompt. */
  readonly requests: readonly ChatRequest[];
  /** Fields that the request has and that change nothing here. */
  readonly ignoredFields: readonly string[];
  /** Returns the body of a response that is not streamed. */
  respond(results: readonly ChatResult[], engine: ChatEngine): object;
  stream(engine: ChatEngine): StreamEncoder;
}

/** A vendor's API for completions. */
export interface WireFormat {
  readonly path: string;
  /** Maximum number of commas between values of a body. Default `MAX_BODY_VALUES`. */
  readonly maxCommas?: number;
  /** @throws RequestError for a body that is not valid. */
  parse(body: unknown): WireRequest;
  formatError(error: RequestError): object;
  /** The event that reports an error after a stream has begun. */
  errorEvent(error: RequestError): ServerEvent;
}

/**
 * Fields of some API that change a completion: where another API lacks them, they are refused
 * instead of ignored.
 */
const EFFECTIVE_FIELDS = [
  ..."temperature top_p top_k min_p repetition_penalty frequency_penalty presence_penalty logit_bias seed n best_of".split(
    " ",
  ),
  ..."logprobs top_logprobs echo suffix stop stop_sequences tools tool_choice response_format functions".split(" "),
  ..."guided_json guided_regex guided_choice guided_grammar structured_outputs grammar stop_token_ids chat_template prompt_logprobs".split(
    " ",
  ),
];

const MAX_TOKENS_NAMES = ["max_tokens", "max_output_tokens"];

/** Fields of other APIs and servers, by their possible names here. */
const SYNONYMS = new Map<string, readonly string[]>([
  ["max_new_tokens", MAX_TOKENS_NAMES],
  ["max_length", MAX_TOKENS_NAMES],
  ["n_predict", MAX_TOKENS_NAMES],
  ["num_predict", MAX_TOKENS_NAMES],
  ["repeat_penalty", ["repetition_penalty"]],
  ["json_schema", ["response_format", "output_format"]],
  ["functions", ["tools"]],
  ["function_call", ["tool_choice"]],
  ["streaming", ["stream"]],
  ["system", ["instructions", "messages"]],
  ["instructions", ["system", "messages"]],
  ["messages", ["input", "prompt"]],
  ["input", ["messages", "prompt"]],
  ["prompt", ["messages", "input"]],
  ["parameters", ["input_schema"]],
  ["input_schema", ["parameters"]],
  ["inputSchema", ["parameters", "input_schema"]],
]);

/** Maximum number of fields of a request; the unknown ones are compared with the known ones. */
const MAX_FIELDS = 256;

/**
 * Checks the body of a vendor's API, which gets new optional fields and tools every week: unknown
 * fields are ignored, as are tools of other types than `toolTypes`, which the vendor runs; both are
 * named in `ignoredFields`. @throws RequestError with the first field that is wrong, misspelled, or
 * has an effect in another API only.
 */
export function parseVendorBody<Schema extends z.ZodObject>(
  schema: Schema,
  body: unknown,
  toolTypes?: readonly string[],
): { readonly parsed: z.infer<Schema>; readonly ignoredFields: readonly string[] } {
  const known = new Set(Object.keys(schema.shape));
  const fields = asJsonObject(body) ?? {};
  const unknown = listUnknown("", fields, known);
  const given = isJsonObject(body)
    ? Object.fromEntries(Object.entries(fields).filter(([name]) => known.has(name)))
    : body;
  const { tools, ignoredTools } = splitTools(asJsonObject(given)?.tools, toolTypes);
  const parsed = parseBody(schema, ignoredTools.length === 0 ? given : { ...asJsonObject(given), tools });
  return { parsed, ignoredFields: [...unknown, ...ignoredTools] };
}

/**
 * Returns the unknown fields of parts of a request, such as its messages, as "messages.FIELD";
 * `member` leads from an item at `path` to its part. @throws RequestError for a field that is
 * misspelled, or that has another name here.
 */
export function listUnknownFields(
  path: string,
  parts: readonly (object | null | undefined)[] | object | null | undefined,
  { shape }: z.ZodObject,
  member = "",
): readonly string[] {
  const known = new Set(Object.keys(shape));
  const names = Array.isArray(parts)
    ? (parts as readonly object[]).flatMap((part, i) => listUnknown(`${path}[${i}]${member}.`, part, known))
    : listUnknown(`${path}.`, parts ?? {}, known);
  return Array.from(new Set(names), (name) => `${path}${member}.${name}`);
}

/** Returns the fields of an object that are not known; one that is null asks for nothing. */
function listUnknown(prefix: string, fields: object, known: ReadonlySet<string>): readonly string[] {
  const entries = Object.entries(fields);
  if (entries.length > MAX_FIELDS) throw invalidField("body", `has ${entries.length} fields, more than ${MAX_FIELDS}`);
  const unknown = entries.filter(([name, value]) => !known.has(name) && value !== null).map(([name]) => name);
  for (const name of unknown) {
    const meant = SYNONYMS.get(name)?.find((each) => known.has(each)) ?? findMisspelledName(name, known);
    const isEffective = prefix === "" && EFFECTIVE_FIELDS.includes(name);
    if (meant !== undefined || isEffective)
      throw unknownField(prefix + name, meant === undefined ? [...known] : [meant]);
  }
  return unknown;
}

/** Separates the tools of some types from those of types that the vendor runs, which are named. */
function splitTools(tools: unknown, toolTypes: readonly string[] | undefined) {
  const readType = (tool: unknown) => asJsonObject(tool)?.type;
  const isOther = (type: unknown): type is string => typeof type === "string" && !toolTypes!.includes(type);
  if (toolTypes === undefined || !Array.isArray(tools)) return { tools, ignoredTools: [] };
  const others = new Set(tools.map(readType).filter(isOther));
  return {
    tools: tools.filter((tool) => !isOther(readType(tool))),
    ignoredTools: Array.from(others, (type) => `tools.${type}`),
  };
}

/** Checks a request's body. @throws RequestError with the first field that is wrong, or unknown. */
export function parseBody<Schema extends z.ZodObject>(schema: Schema, body: unknown): z.infer<Schema> {
  const result = schema.safeParse(body);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  if (issue.code === "unrecognized_keys" && issue.path.length === 0) {
    throw unknownField(issue.keys[0], Object.keys(schema.shape));
  }
  const { path, message } = findIssue(result.error.issues);
  throw invalidField(path === "" ? "body" : path, message);
}

/** An error about a field that is not one of the known ones; a single one is what is meant. */
function unknownField(name: string, known: readonly string[]): RequestError {
  const advice = known.length === 1 ? `Did you mean ${known[0]}?` : suggestNames(name, known);
  const message = `Unknown field "${name}". ${advice}`;
  return new RequestError(400, message, { code: "unknown_parameter", param: name });
}

/** An error about a field of the request. */
export function invalidField(param: string, problem: string): RequestError {
  return new RequestError(400, `Invalid \`${param}\`: ${problem.replace(/\.$/, "")}.`, {
    code: "invalid_value",
    param,
  });
}

/** A field that changes nothing here and is accepted because clients send it. */
export const ignored = z.unknown().optional();

/**
 * Sampling parameters under the names that most APIs share; the last three are vLLM's additions.
 */
export const samplingFields = {
  temperature: settingField({ ...generationSettings.temperature, max: 2 }).nullish(),
  top_p: settingField(generationSettings.topP).nullish(),
  top_k: settingField({ ...generationSettings.topK, min: -1 }).nullish(),
  min_p: settingField(generationSettings.minP).nullish(),
  repetition_penalty: settingField(generationSettings.repetitionPenalty).nullish(),
};

/** The most tokens of a completion. */
export const maxTokensField = settingField(generationSettings.maxNewTokens);

/** Returns sampling parameters by their names here. */
export function readSampling(body: {
  readonly [name in keyof typeof samplingFields]?: number | null;
}): ChatRequest["sampling"] {
  const { temperature, top_p: topP, top_k: topK, min_p: minP, repetition_penalty: repetitionPenalty } = body;
  const given = { temperature, topP, topK: topK === -1 ? 0 : topK, minP, repetitionPenalty };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => typeof value === "number"));
}

/** Maximum number of choices of one request; each takes a sequence of the batch. */
export const MAX_CHOICES_PER_REQUEST = 128;

/** Maximum number of alternatives per token, as in OpenAI's API. */
export const MAX_TOP_LOG_PROBS = 20;

/** Maximum number of messages of a request, and of parts of a message. */
const MAX_MESSAGES = 4096;

/**
 * A list whose length is checked before its elements are: errors of a million elements would take
 * seconds.
 */
export const listOf = <Item extends z.ZodType>(item: Item, { min = 0, max = MAX_MESSAGES } = {}) =>
  z.array(z.unknown()).min(min).max(max).pipe(z.array(item));

/** Maximum number of tools of a request, as in OpenAI's API. */
export const MAX_TOOLS = 128;

export const seedField = settingField({ ...generationSettings.seed, min: -1 }).nullish();

/**
 * Returns the seed of a request; undefined for -1, with which clients of llama.cpp and vLLM ask for
 * a random one.
 */
export const readSeed = (seed: z.infer<typeof seedField>): number | undefined =>
  seed === -1 ? undefined : (seed ?? undefined);

/** A penalty that is not computed here; only its neutral value is accepted. */
export const noPenalty = z.literal(0, "is not supported; use repetition_penalty").nullish();

/** A bias of tokens, which is not computed here; only an empty one is accepted. */
export const noBias = z
  .custom((value) => isJsonObject(value) && Object.keys(value).length === 0, "is not supported")
  .nullish();

/** Stop strings; more than a few slow down every token. */
export const stopField = z.union([z.string().min(1), listOf(z.string().min(1), { max: 16 })]).nullish();

export function toStopStrings(stop: z.infer<typeof stopField>): readonly string[] {
  return typeof stop === "string" ? [stop] : (stop ?? []);
}

const textPart = z.discriminatedUnion(
  "type",
  [
    z.looseObject({ type: z.enum(["text", "input_text", "output_text"]), text: z.string() }),
    z.looseObject({ type: z.literal("refusal"), refusal: z.string() }).transform(({ refusal }) => ({ text: refusal })),
  ],
  "only text parts are supported",
);

/** A text or a list of text parts, joined; a refusal is a text. */
export const textContent = z
  .union([z.string(), listOf(textPart)])
  .transform((content) => (typeof content === "string" ? content : content.map(({ text }) => text).join("")));

/**
 * A JSON object, which stays the parsed one: a copy would lose how its numbers and keys are
 * written.
 */
export const jsonObject = z.custom<JsonObject>(isJsonObject, "must be an object");

const NO_PARAMETERS = { type: "object", properties: {} };

/** Keywords with which a schema describes arguments. */
const ARGUMENT_KEYWORDS = ["properties", "$ref", "anyOf", "oneOf", "not", "propertyNames", "minProperties"];

/** Reads the schema of a tool's arguments: anything without one has none. */
export const toolParameters = jsonObject.nullish().transform((schema) => {
  if (schema === null || schema === undefined) return NO_PARAMETERS;
  const isPlain = ARGUMENT_KEYWORDS.every((name) => schema[name] === undefined);
  return isPlain && !isSchema(schema.additionalProperties) ? { ...schema, ...NO_PARAMETERS } : schema;
});

export const toolName = z.string().regex(/^[\w.-]{1,128}$/, "must be 1 to 128 letters, digits, _, - or .");

/** A tool call of an earlier message, in the form that chat templates read. */
export function toTemplateCall(id: string, name: string, args: unknown): Record<string, unknown> {
  return { id, type: "function", function: { name, arguments: args } };
}

/**
 * Returns a function that parses the arguments of a request's earlier tool calls. Models write
 * broken calls, which agents send back with the error that they got; what is not a JSON object
 * stays the text that it is. The function throws a RequestError when the arguments together have
 * more values than a body may have.
 */
export function argumentsParser(): (text: string) => unknown {
  let left = MAX_BODY_VALUES;
  return (text) => {
    try {
      left -= checkJsonSize(text, { maxNodes: left, maxCommas: left });
      const value: unknown = text === "" ? {} : parseLosslessJson(text);
      return isSchema(value) ? value : text;
    } catch (error) {
      if (error instanceof RangeError)
        throw invalidField("arguments", `of earlier tool calls have more than ${MAX_BODY_VALUES} values in all`);
      return text;
    }
  };
}

/** Adds the names of the called tools to their results, which some templates need. */
export function nameToolResults(messages: readonly ChatMessage[]): ChatMessage[] {
  const names = new Map<unknown, string>();
  return messages.map((message) => {
    for (const call of (message.tool_calls ?? []) as readonly { id: string; function: { name: string } }[])
      names.set(call.id, call.function.name);
    const name = message.role === "tool" ? names.get(message.tool_call_id) : undefined;
    return name === undefined ? message : { ...message, name };
  });
}

/** @throws RequestError if two tools have one name. */
export function checkToolNames(tools: readonly FunctionTool[]): void {
  const repeated = tools.find(({ name }, i) => tools.findIndex((tool) => tool.name === name) < i);
  if (repeated !== undefined) throw invalidField("tools", `two tools have the name "${repeated.name}"`);
}

/** The type of a tool that is no function, which the vendor runs. */
export const otherType = z.string().refine((type) => type !== "function", "a function needs a name");

/** A choice of some tools, and whether one of them must be called. */
export const allowedToolsMode = z.enum(["auto", "required"]);

/**
 * Returns how a completion may call the tools of a list, of which `undefined` stands for those that
 * the vendor runs. @throws RequestError for one that the request does not have.
 */
export function readAllowedTools(
  mode: z.infer<typeof allowedToolsMode>,
  names: readonly (string | undefined)[],
  tools: readonly FunctionTool[],
): Pick<ChatRequest, "toolChoice" | "allowedTools"> {
  const allowedTools = names.filter((name) => name !== undefined);
  const missing = allowedTools.find((name) => tools.every((tool) => tool.name !== name));
  if (missing !== undefined)
    throw invalidField("tool_choice", `${JSON.stringify(missing)} is not one of the request's tools`);
  if (allowedTools.length > 0) return { toolChoice: mode, allowedTools };
  if (mode === "required") throw invalidField("tool_choice", "requires a call, but names no function");
  return { toolChoice: "none" };
}

/** Token counts of a response. */
export function countTokens(results: readonly ChatResult[]): { prompt: number; cached: number; completion: number } {
  const sum = (values: readonly number[]) => values.reduce((a, b) => a + b, 0);
  return {
    prompt: sum(results.map(({ promptTokens }) => promptTokens.length)),
    cached: sum(results.map(({ cachedPromptTokens }) => cachedPromptTokens)),
    completion: sum(results.flatMap(({ choices }) => choices.map(({ tokens }) => tokens.length))),
  };
}

/** Creates an id such as "chatcmpl-0f1e...". */
export function createId(prefix: string): string {
  return `${prefix}${crypto.randomUUID().replaceAll("-", "")}`;
}

/** Seconds since 1970, as responses have them. */
export const unixTime = () => Math.floor(Date.now() / 1000);
