import { isJsonObject } from "../../core/json.js";
import { keepWrittenForm } from "../../core/lossless-json.js";
import type { ChatMessage } from "../../models/text/index.js";
import { readJsonField } from "./read-json-field.js";
import type { RowFields } from "./read-rows.js";

/** Roles by their names in ShareGPT's and LLaMA-Factory's files and in OpenAI's first API. */
const ROLES: Readonly<Record<string, string>> = {
  human: "user",
  gpt: "assistant",
  chatgpt: "assistant",
  bing: "assistant",
  bard: "assistant",
  bot: "assistant",
  model: "assistant",
  function_call: "assistant",
  tool_call: "assistant",
  observation: "tool",
  function: "tool",
  function_response: "tool",
  tool_response: "tool",
};

/** Roles that a message under ShareGPT's `from` may have. */
const SHAREGPT_ROLES = new Set([...Object.keys(ROLES), ...Object.values(ROLES), "system", "developer"]);

/** Parts of a message that chat templates print. */
const PART_TYPES: readonly unknown[] = ["text", "thinking"];

/** How the trainers name whether an answer is trained by its parts or with other weights. */
const OTHER_WEIGHTS = ["train_detail", "loss_scale", "loss_weight", "loss_mask", "step_loss_mask", "mask", "trainable"];

/** A text, or messages in its place. */
export type TextOrMessages = string | readonly ChatMessage[];

/**
 * Reads a text, messages, or one message. Text that is messages in JSON, as CSV files have them, is
 * these messages. @throws Error with the reason.
 */
export function readTextOrMessages(name: string, value: unknown): TextOrMessages {
  const parsed = typeof value === "string" && /^\s*[[{]/.test(value) ? parseMessages(name, value) : value;
  if (typeof parsed === "string") return parsed;
  try {
    return readMessages(Array.isArray(parsed) ? parsed : [parsed]);
  } catch (error) {
    throw new Error(`"${name}" must be a text or messages: ${(error as Error).message}`, { cause: error });
  }
}

function parseMessages(name: string, value: string): unknown {
  try {
    const parsed = readJsonField(name, value);
    const items: readonly unknown[] = Array.isArray(parsed) ? parsed : [parsed];
    return items.length > 0 && items.every(isMessage) ? parsed : value;
  } catch {
    return value;
  }
}

/** Whether a value has the form of a message. */
export const isMessage = (value: unknown): boolean =>
  isJsonObject(value) && (typeof value.role === "string" || typeof value.from === "string");

/**
 * Reads messages, or ShareGPT's turns with `from` and `value`. Whether an answer is trained, which
 * is `train` and `training` of axolotl and `loss` of ms-swift, becomes OpenAI's `weight`; calls of
 * a function become `tool_calls`. @throws Error with the reason.
 */
export function readMessages(value: unknown): ChatMessage[] {
  const list = readJsonField("messages", value);
  if (!Array.isArray(list) || list.length === 0) throw new Error("messages must be a non-empty array.");
  return list.map((message: unknown, i) => {
    try {
      if (!isJsonObject(message)) throw new Error("is not an object");
      return keepWrittenForm(readMessage(message), message);
    } catch (error) {
      throw new Error(`message ${i + 1} ${(error as Error).message}.`, { cause: error });
    }
  });
}

function readMessage(fields: RowFields): ChatMessage {
  const { from, value, role: givenRole = from, train, training, loss, function_call: call, ...others } = fields;
  if (typeof givenRole !== "string") throw new Error("has no role");
  const isCall = givenRole === "function_call" || givenRole === "tool_call";
  const lower = givenRole.toLowerCase();
  if (lower !== givenRole && SHAREGPT_ROLES.has(lower))
    throw new Error(`has the role ${JSON.stringify(givenRole)}; write ${JSON.stringify(lower)}`);
  if (givenRole === from && !SHAREGPT_ROLES.has(from))
    throw new Error(`is from ${JSON.stringify(from)}; known are ${[...SHAREGPT_ROLES].join(", ")}`);
  const role = ROLES[givenRole] ?? givenRole;
  const content = nameParts(others.content ?? value);
  checkContent(role, content);
  const otherWeight = OTHER_WEIGHTS.find((name) => isPresent(others[name]));
  if (otherWeight !== undefined) throw new Error(`has "${otherWeight}", which is not supported; use "weight"`);
  const weight = readWeight(role, { weight: others.weight, train, training, loss });
  const message = {
    content: isCall ? "" : content,
    ...withoutKeys(others, ["weight", "content", ...OTHER_WEIGHTS]),
    role,
  };
  const calls = isCall ? content : call;
  const read = {
    ...(message as ChatMessage),
    ...(isPresent(calls) && { tool_calls: toToolCalls(calls) }),
    ...(isPresent(others.tool_calls) && { tool_calls: readToolCalls(others.tool_calls) }),
    ...(weight !== undefined && { weight }),
  };
  return isSame(read, fields) ? (fields as unknown as ChatMessage) : read;
}

/** Whether two objects have the same entries; unchanged messages keep the order of their fields. */
const isSame = (a: object, b: RowFields): boolean =>
  Object.keys(a).length === Object.keys(b).length && Object.entries(a).every(([key, value]) => b[key] === value);

const isPresent = (value: unknown) => value !== undefined && value !== null;

const withoutKeys = (fields: RowFields, keys: readonly string[]) =>
  Object.fromEntries(Object.entries(fields).filter(([key]) => !keys.includes(key)));

/** Writes the type of parts that have a text alone, as in Bedrock's messages. */
const nameParts = (content: unknown): unknown =>
  Array.isArray(content)
    ? content.map((part: unknown) =>
        isJsonObject(part) && part.type === undefined && typeof part.text === "string"
          ? { type: "text", ...part }
          : part,
      )
    : content;

function checkContent(role: string, content: unknown): void {
  if (!isPresent(content)) {
    if (role !== "assistant") throw new Error("has no content");
  } else if (Array.isArray(content)) checkParts(content);
  else if (typeof content !== "string" && role !== "tool")
    throw new Error(`has ${JSON.stringify(content)} as content; write it as text`);
}

function checkParts(parts: readonly unknown[]): void {
  if (!parts.every(isJsonObject)) throw new Error("has a list of content with items that are not objects");
  const other = parts.find(({ type }) => !PART_TYPES.includes(type));
  if (other === undefined) return;
  const cure = other.type === "tool_use" || other.type === "tool_result" ? ', calls are "tool_calls"' : "";
  throw new Error(`has a part of type ${JSON.stringify(other.type)}; only text is supported${cure}`);
}

/**
 * Returns 0 for an answer that is not trained, 1 for one that is, undefined where nothing says so.
 */
function readWeight(role: string, flags: RowFields): 0 | 1 | undefined {
  const given = Object.entries(flags).filter(([, flag]) => isPresent(flag));
  if (given.length === 0) return undefined;
  for (const [name, flag] of given) {
    if (flag !== 0 && flag !== 1 && typeof flag !== "boolean")
      throw new Error(`has ${JSON.stringify(flag)} as "${name}"; an answer is trained (1, true) or not (0, false)`);
    if (Boolean(flag) !== Boolean(given[0][1])) throw new Error(`has a "${name}" that contradicts "${given[0][0]}"`);
  }
  const isTrained = Boolean(given[0][1]);
  if (isTrained && role !== "assistant")
    throw new Error(`of the ${role} has "${given[0][0]}"; only the assistant's messages are trained`);
  return isTrained ? 1 : 0;
}

/** Reads the calls of a message, or their JSON text; one that has a name calls a function. */
function readToolCalls(value: unknown): unknown {
  const calls = readJsonField("tool_calls", value);
  if (!Array.isArray(calls)) throw new Error("has tool_calls that are no array");
  return (calls as readonly unknown[]).map((call) => {
    if (!isJsonObject(call) || call.function !== undefined || typeof call.name !== "string") return call;
    const { id, type: _type, ...callee } = call;
    const named = keepWrittenForm(callee, call);
    return { ...(isPresent(id) && { id }), type: "function", function: named };
  });
}

/** Converts a call with a name and arguments, or a list of them, as JSON or as its text. */
function toToolCalls(value: unknown): object[] {
  const calls = readJsonField("function_call", value);
  return (Array.isArray(calls) ? (calls as unknown[]) : [calls]).map((call) => {
    if (isJsonObject(call) && typeof call.name === "string") return { type: "function", function: call };
    throw new Error('has a function call that is not { "name": ..., "arguments": ... }');
  });
}
