import { isJsonObject } from "../../core/json.js";
import { keepWrittenForm, parseLosslessJson, stringifyJson } from "../../core/lossless-json.js";
import type { ChatMessage } from "./chat-messages.js";

/** A conversation with a call, whose argument tells how a template prints arguments. */
const PROBE_ARGUMENT = "probed_argument";
const PROBE_ARGUMENTS = { [PROBE_ARGUMENT]: "x" };

/** How a template wants the arguments of tool calls. */
export type ArgumentsForm = "object" | "text";

/**
 * Returns how a template prints the arguments of tool calls: as an object, or only as their JSON
 * text, as DeepSeek's do. `render` throws for messages that the template refuses.
 */
export function probeArgumentsForm(render: (messages: readonly ChatMessage[]) => string): ArgumentsForm {
  const print = (args: unknown) => {
    const call = { id: "call00001", type: "function", function: { name: "probe", arguments: args } };
    try {
      return render([
        { role: "user", content: "x" },
        { role: "assistant", content: "", tool_calls: [call] },
      ]);
    } catch {
      return "";
    }
  };
  // A template that prints an object as Python does expects a text. Gemma 4 and LFM2 print names
  // without quotes.
  const printed = print(PROBE_ARGUMENTS);
  const takesObject = printed.includes(PROBE_ARGUMENT) && !printed.includes(`'${PROBE_ARGUMENT}'`);
  return !takesObject && print(stringifyJson(PROBE_ARGUMENTS)).includes(`"${PROBE_ARGUMENT}"`) ? "text" : "object";
}

/**
 * Brings the arguments of tool calls into a form: OpenAI's API writes them as JSON text, which most
 * templates would print as a string. A text that is not a JSON object stays what it is. `getForm`
 * is called only for messages with calls.
 */
export function prepareToolCalls(
  messages: readonly ChatMessage[],
  getForm: () => ArgumentsForm,
): readonly ChatMessage[] {
  if (!messages.some(({ tool_calls: calls }) => Array.isArray(calls) && calls.length > 0)) return messages;
  const convert = getForm() === "object" ? toObject : toText;
  const prepareCall = (call: unknown): unknown => {
    if (!isJsonObject(call)) return call;
    const { function: callee, arguments: args } = call;
    if (isJsonObject(callee)) return replace(call, "function", prepareCall(callee));
    return args === undefined ? call : replace(call, "arguments", convert(args));
  };
  return messages.map((message) => {
    const { tool_calls: calls } = message;
    return Array.isArray(calls) ? replace(message, "tool_calls", calls.map(prepareCall)) : message;
  });
}

function replace<Fields extends object>(fields: Fields, name: string, value: unknown): Fields {
  return keepWrittenForm({ ...fields, [name]: value }, fields);
}

function toObject(args: unknown): unknown {
  if (typeof args !== "string") return args;
  try {
    const value = args.trim() === "" ? {} : parseLosslessJson(args);
    return isJsonObject(value) ? value : args;
  } catch {
    return args;
  }
}

const toText = (args: unknown) => (typeof args === "string" ? args : stringifyJson(args, [", ", ": "]));
