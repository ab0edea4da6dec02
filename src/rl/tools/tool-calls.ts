import { invalidArgument } from "../../core/errors.js";
import { keepWrittenForm, parseLosslessJson, stringifyJson } from "../../core/lossless-json.js";
import { isSchema, type JsonSchema } from "../../generation/index.js";
import type { ToolCallLayout } from "../../envs/index.js";
import type { ChatMessage, ToolDefinition } from "../../models/text/index.js";
import { describeType } from "./describe-type.js";

/** A function that a completion may call. */
export interface FunctionTool {
  readonly name: string;
  readonly description?: string;
  /** JSON schema of the arguments, an object. */
  readonly parameters: JsonSchema;
}

/** A call of a tool. */
export interface ToolCall {
  readonly id: string;
  readonly name: string;
  /** Arguments as JSON text. */
  readonly arguments: string;
}

/** How a model writes tool calls: JSON objects, or names and arguments, between two markers. */
export interface ToolCallFormat extends ToolCallLayout {
  /** Text before a call; empty where the call is the whole completion. */
  readonly open: string;
  readonly close: string;
  /**
   * Text between a tool's name and its arguments, for formats in which they are not members of an
   * object.
   */
  readonly separator?: string;
  /**
   * Where tools are described: by the chat template, in the system message's field `tools`, or in
   * its text.
   */
  readonly tools: "template" | "field" | "text";
}

const JSON_CALL = { isList: false, argumentsKey: "arguments", tools: "template" } as const;

/** The format of Hermes, Qwen and SmolLM. */
const HERMES: ToolCallFormat = { ...JSON_CALL, open: "<tool_call>\n", close: "\n</tool_call>" };
const LLAMA: ToolCallFormat = { ...JSON_CALL, open: "", close: "", argumentsKey: "parameters" };
const PHI: ToolCallFormat = { ...JSON_CALL, open: "<|tool_call|>", close: "<|/tool_call|>", isList: true };
const MISTRAL: ToolCallFormat = { ...JSON_CALL, open: "[TOOL_CALLS]", close: "", isList: true };

/**
 * Formats by a text that only templates with the format contain; the first that is found counts.
 */
const FORMAT_BY_MARKER: Readonly<Record<string, ToolCallFormat>> = {
  "[ARGS]": { ...MISTRAL, isList: false, separator: "[ARGS]" },
  "[TOOL_CALLS]": MISTRAL,
  "<|tool_call|>": PHI,
  "message['tools']": { ...PHI, tools: "field" },
  "<|python_tag|>": LLAMA,
  '"parameters": dictionary of argument name': LLAMA,
  "<tool_call>": HERMES,
};

/**
 * Texts of formats that share a marker with a supported one: XML calls of Qwen3-Coder and GLM, and
 * Mistral's with ids.
 */
const UNSUPPORTED_MARKERS = ["<function=", "<arg_key>", "[CALL_ID]"];

/** Formats for templates that render no tools. */
const UNTRAINED = {
  auto: { ...HERMES, tools: "text" },
  required: { ...LLAMA, separator: " ", tools: "text" },
} as const;

/**
 * Returns the format of the tool calls that a chat template renders. For a template that renders no
 * tools, a required call is a name with its arguments, which has the fewest tokens before the first
 * decision, and any other one is written as Hermes's. Undefined for a format that is not supported.
 */
export function readToolCallFormat(chatTemplate: string | undefined, mustCall: boolean): ToolCallFormat | undefined {
  if (chatTemplate === undefined || !/\btools\b/.test(chatTemplate)) return UNTRAINED[mustCall ? "required" : "auto"];
  const marker = Object.keys(FORMAT_BY_MARKER).find((text) => chatTemplate.includes(text));
  if (marker === undefined || UNSUPPORTED_MARKERS.some((text) => chatTemplate.includes(text))) return undefined;
  return FORMAT_BY_MARKER[marker];
}

/** Whether a chat template renders tools itself, also in a format that is not supported. */
export const rendersTools = (chatTemplate: string): boolean =>
  (readToolCallFormat(chatTemplate, false)?.tools ?? "template") === "template";

/**
 * Returns a format for requests without tools. @throws INVALID_ARGUMENT for requests with tools.
 */
export function unsupportedFormat(
  tools: readonly FunctionTool[],
  advice = "Send the request without tools, for example with a JSON schema as response format.",
): ToolCallFormat {
  if (tools.length === 0) return HERMES;
  throw invalidArgument(
    "The format in which this model's chat template writes tool calls is not supported. The formats of these families are supported: Hermes and Qwen, " +
      `Llama 3, Mistral and Phi. ${advice}`,
  );
}

/**
 * Reads tool calls from the text between the markers; undefined if it consists of no calls of these
 * tools.
 */
export function parseToolCalls(
  text: string,
  tools: readonly FunctionTool[],
  format: ToolCallFormat,
): ToolCall[] | undefined {
  const calls = readCalls(text, format)?.map(({ name, args }) => {
    const isOffered = tools.some((tool) => tool.name === name);
    return isOffered && args !== undefined ? { id: createCallId(), name, arguments: args } : undefined;
  });
  return calls === undefined || calls.includes(undefined) ? undefined : (calls as ToolCall[]);
}

/** A call as a model wrote it. */
export interface WrittenCall {
  readonly name: string;
  /** Arguments as JSON text; undefined unless they are an object. */
  readonly args: string | undefined;
}

/**
 * Reads the calls of a text between the markers, of any tools; undefined for a text that is not
 * JSON of named calls.
 */
export function readCalls(text: string, { argumentsKey, separator }: ToolCallFormat): WrittenCall[] | undefined {
  const nameEnd = separator === undefined ? -1 : text.indexOf(separator);
  let value: unknown;
  try {
    value = parseLosslessJson(nameEnd < 0 ? text : text.slice(nameEnd + separator!.length));
  } catch {
    return undefined;
  }
  if (nameEnd >= 0) value = { name: text.slice(0, nameEnd).trim(), [argumentsKey]: value };
  const calls = (Array.isArray(value) ? value : [value]).map((call: unknown): WrittenCall | undefined => {
    if (!isSchema(call) || typeof call.name !== "string") return undefined;
    const args = call[argumentsKey];
    return { name: call.name, args: isSchema(args) ? stringifyJson(args) : undefined };
  });
  return calls.length === 0 || calls.includes(undefined) ? undefined : (calls as WrittenCall[]);
}

/** Creates an id of nine letters and digits, the form that Mistral's templates require. */
function createCallId(): string {
  return crypto.randomUUID().replaceAll("-", "").slice(0, 9);
}

/** Returns a tool in the form that chat templates read. */
function toToolDefinition({ name, description, parameters }: FunctionTool): ToolDefinition {
  return { type: "function", function: { name, description: description ?? "", parameters } };
}

/** Returns the messages and tools with which the chat template of a format is rendered. */
export function toTemplateInput(
  messages: readonly ChatMessage[],
  tools: readonly FunctionTool[],
  format: ToolCallFormat | undefined,
): { readonly messages: readonly ChatMessage[]; readonly tools?: readonly ToolDefinition[] } {
  if (format !== undefined && format.tools !== "template") return { messages: describeTools(messages, tools, format) };
  return { messages, tools: tools.length === 0 ? undefined : tools.map(toToolDefinition) };
}

/**
 * Rewrites messages for a template that renders no tools: they become part of the system message,
 * or of its field `tools`, and their calls part of the text.
 */
function describeTools(
  messages: readonly ChatMessage[],
  tools: readonly FunctionTool[],
  format: ToolCallFormat,
): ChatMessage[] {
  const plain: ChatMessage[] = messages.map((message) => toPlainMessage(message, format));
  if (tools.length === 0) return plain;
  const system = plain[0]?.role === "system" ? plain.shift()! : { role: "system", content: "" };
  if (format.tools === "field") {
    const definitions = tools.map((tool) => toToolDefinition(tool).function);
    return [{ ...system, tools: stringifyJson(definitions) }, ...plain];
  }
  const instructions =
    format.separator === undefined
      ? `Functions that you may call:\n${tools.map(describeTool).join("\n")}\n\nTo call one, reply with\n` +
        `${format.open}{"name": NAME, "arguments": ARGUMENTS}${format.close}`
      : `Reply with a function and its arguments:\n${tools.map(describeSignature).join("\n")}`;
  const content = system.content === "" ? instructions : `${system.content as string}\n\n${instructions}`;
  return [{ role: "system", content }, ...plain];
}

/**
 * Describes a tool in few tokens: without its schema's dialect, and without parameters where there
 * are none.
 */
function describeTool({ name, description, parameters }: FunctionTool): string {
  const hasParameters = isSchema(parameters.properties) && Object.keys(parameters.properties).length > 0;
  return stringifyJson({
    name,
    description,
    parameters: hasParameters ? keepWrittenForm({ ...parameters, $schema: undefined }, parameters) : undefined,
  });
}

/** Describes a tool as a call is written: `lookup {"order": integer from 1 to 99}: Returns ...`. */
function describeSignature({ name, description, parameters }: FunctionTool): string {
  const object = keepWrittenForm({ type: "object", properties: {}, ...parameters, description: undefined }, parameters);
  const signature = `${name} ${describeType(object)}`;
  return description === undefined || description === "" ? signature : `${signature}: ${description}`;
}

function toPlainMessage(message: ChatMessage, format: ToolCallFormat): ChatMessage {
  const parts = typeof message.content === "string" ? [{ text: message.content }] : (message.content ?? []);
  const content = parts.map(({ text }) => text ?? "").join("");
  if (message.role === "tool" && format.tools === "text") {
    const isShort = format.separator !== undefined;
    return { role: "user", content: isShort ? `Result: ${content}` : `<tool_response>\n${content}\n</tool_response>` };
  }
  const calls = (message.tool_calls ?? []) as readonly { function: { name: string; arguments: unknown } }[];
  const { open, close, separator, isList, argumentsKey } = format;
  const texts = calls.map(({ function: { name, arguments: args } }) => {
    // With spaces, as constrained calls are sampled.
    const written = stringifyJson(args, [", ", ": "]);
    if (separator !== undefined) return `${open}${name}${separator}${written}${close}`;
    const call = `{"name": ${JSON.stringify(name)}, "${argumentsKey}": ${written}}`;
    return `${open}${isList ? `[${call}]` : call}${close}`;
  });
  return { role: message.role, content: [content, ...texts].filter((text) => text !== "").join("\n") };
}
