import { isSchema } from "../../generation/constraints/json-schema/keywords.js";
import type { ToolCallLayout } from "../../envs/spaces/tool-call-schema.js";
import type { ChatMessage, ToolDefinition } from "../../models/text/index.js";
import type { FunctionTool, ToolCall } from "./chat-engine.js";

/** How a model writes tool calls: one JSON object, or a list of them, between two markers. */
export interface ToolCallFormat extends ToolCallLayout {
  /** Text before a call; empty where the JSON is the whole completion. */
  readonly open: string;
  readonly close: string;
  /** Whether the chat template renders tools and their calls; otherwise messages are rewritten for it. */
  readonly isInTemplate: boolean;
}

type CallSyntax = Omit<ToolCallFormat, "isInTemplate">;

/** The format of Hermes, Qwen and SmolLM, and of models whose template has none. */
const HERMES: CallSyntax = {
  open: "<tool_call>\n",
  close: "\n</tool_call>",
  isList: false,
  argumentsKey: "arguments",
};

/** Other formats, by a text that only templates with the format contain. */
const SYNTAX_BY_MARKER: Readonly<Record<string, CallSyntax>> = {
  "[TOOL_CALLS]": { open: "[TOOL_CALLS]", close: "", isList: true, argumentsKey: "arguments" },
  "<|tool_call|>": { open: "<|tool_call|>", close: "<|/tool_call|>", isList: true, argumentsKey: "arguments" },
  "<|python_tag|>": { open: "", close: "", isList: false, argumentsKey: "parameters" },
};

/** Returns the format of the tool calls that a chat template renders. */
export function readToolCallFormat(chatTemplate: string | undefined): ToolCallFormat {
  if (chatTemplate === undefined || !/\btools\b/.test(chatTemplate)) return { ...HERMES, isInTemplate: false };
  const marker = Object.keys(SYNTAX_BY_MARKER).find((text) => chatTemplate.includes(text));
  return { ...(marker === undefined ? HERMES : SYNTAX_BY_MARKER[marker]), isInTemplate: true };
}

/** Reads tool calls from the text between the markers; undefined if it is not JSON of calls of these tools. */
export function parseToolCalls(
  text: string,
  tools: readonly FunctionTool[],
  { argumentsKey }: ToolCallFormat,
): ToolCall[] | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const calls = (Array.isArray(value) ? value : [value]).map((call: unknown) => {
    if (!isSchema(call) || !isSchema(call[argumentsKey])) return undefined;
    const tool = tools.find(({ name }) => name === call.name);
    return tool && { id: createCallId(), name: tool.name, arguments: JSON.stringify(call[argumentsKey]) };
  });
  return calls.length === 0 || calls.includes(undefined) ? undefined : (calls as ToolCall[]);
}

/** Creates an id of nine letters and digits, the form that Mistral's templates require. */
function createCallId(): string {
  return crypto.randomUUID().replaceAll("-", "").slice(0, 9);
}

/** Returns a tool in the form that chat templates read. */
export function toToolDefinition({ name, description, parameters }: FunctionTool): ToolDefinition {
  return { type: "function", function: { name, description: description ?? "", parameters } };
}

/** Rewrites messages for a template that renders no tools: they become part of the system message, their calls of the text. */
export function describeTools(messages: readonly ChatMessage[], tools: readonly FunctionTool[]): ChatMessage[] {
  const signatures = tools.map(describeTool).join("\n");
  const instructions =
    `Functions that you may call:\n${signatures}\n\nTo call one, reply with\n` +
    `${HERMES.open}{"name": NAME, "arguments": ARGUMENTS}${HERMES.close}`;
  const plain = messages.map(toPlainMessage);
  if (tools.length === 0) return plain;
  const system = plain[0]?.role === "system" ? plain.shift() : undefined;
  const content = system === undefined ? instructions : `${system.content}\n\n${instructions}`;
  return [{ role: "system", content }, ...plain];
}

/** Describes a tool in few tokens: without its schema's dialect, and without parameters where there are none. */
function describeTool({ name, description, parameters: { $schema: _, ...parameters } }: FunctionTool): string {
  const hasParameters = isSchema(parameters.properties) && Object.keys(parameters.properties).length > 0;
  return JSON.stringify({ name, description, ...(hasParameters && { parameters }) });
}

function toPlainMessage(message: ChatMessage): { role: string; content: string } {
  const content = typeof message.content === "string" ? message.content : "";
  if (message.role === "tool") return { role: "user", content: `<tool_response>\n${content}\n</tool_response>` };
  const calls = (message.tool_calls ?? []) as readonly { function: { name: string; arguments: unknown } }[];
  if (calls.length === 0) return { role: message.role, content };
  const texts = calls.map((call) => {
    const { name, arguments: args } = call.function;
    return `${HERMES.open}{"name": ${JSON.stringify(name)}, "arguments": ${JSON.stringify(args)}}${HERMES.close}`;
  });
  return { role: message.role, content: [content, ...texts].filter((text) => text !== "").join("\n") };
}
