import { isJsonObject } from "../../core/json.js";
import { keepWrittenForm, parseLosslessJson, stringifyJson } from "../../core/lossless-json.js";
import type { ChatMessage, ContentPart } from "./chat-messages.js";

/** A conversation with a call, whose argument tells how a template prints arguments. */
const PROBE_ARGUMENT = "probed_argument";
const PROBE_ARGUMENTS = { [PROBE_ARGUMENT]: "x" };

const PROBE_TEXT = "probed_text";

/** The forms in which a template prints messages. */
export interface MessageForms {
  /** Arguments of tool calls: an object, or only their JSON text, as DeepSeek's. */
  readonly arguments: "object" | "text";
  /** Content: only text, only lists of parts, or either. */
  readonly content: "text" | "parts" | "any";
  /** Whether a message of tool calls alone needs an empty content, as Qwen 3's. */
  readonly needsContent: boolean;
}

/** Returns the forms that a template prints. `render` throws for messages that it refuses. */
export function probeMessageForms(render: (messages: readonly ChatMessage[]) => string): MessageForms {
  const print = (messages: readonly ChatMessage[]) => {
    try {
      return render(messages);
    } catch {
      return "";
    }
  };
  const args = probeArguments(print);
  return { arguments: args, content: probeContent(print), needsContent: probeNeedsContent(print, args) };
}

type Print = (messages: readonly ChatMessage[]) => string;

/** A value that a template prints as Python does is not meant to be printed. */
const isPrinted = (text: string, probe: string) => text.includes(probe) && !text.includes(`'${probe}'`);

const createProbeCall = (args: unknown) => ({
  id: "call00001",
  type: "function",
  function: { name: "probe", arguments: args },
});

function probeArguments(print: Print): MessageForms["arguments"] {
  const printCall = (args: unknown) =>
    print([
      { role: "user", content: "x" },
      {
        role: "assistant",
        content: "",
        tool_calls: [createProbeCall(args)],
      },
    ]);
  // Gemma 4 and LFM2 print names without quotes.
  if (isPrinted(printCall(PROBE_ARGUMENTS), PROBE_ARGUMENT)) return "object";
  return printCall(stringifyJson(PROBE_ARGUMENTS)).includes(`"${PROBE_ARGUMENT}"`) ? "text" : "object";
}

function probeNeedsContent(print: Print, form: MessageForms["arguments"]): boolean {
  const args = form === "text" ? stringifyJson(PROBE_ARGUMENTS) : PROBE_ARGUMENTS;
  const call = createProbeCall(args);
  const result: ChatMessage = { role: "tool", tool_call_id: "call00001", name: "probe", content: "x" };
  const user: ChatMessage = { role: "user", content: "x" };
  const printCall = (content: ChatMessage["content"], following: readonly ChatMessage[]) =>
    print([user, { role: "assistant", content, tool_calls: [call] }, ...following]);
  // Some templates print calls in the middle of a conversation otherwise than the last ones.
  return [[], [result], [result, user]].some(
    (following) => printCall(null, following) === "" && printCall("", following) !== "",
  );
}

function probeContent(print: Print): MessageForms["content"] {
  const prints = (content: ChatMessage["content"]) => isPrinted(print([{ role: "user", content }]), PROBE_TEXT);
  const [text, parts] = [prints(PROBE_TEXT), prints([{ type: "text", text: PROBE_TEXT }])];
  return text === parts ? "any" : text ? "text" : "parts";
}

/**
 * Brings messages into the forms that a template prints. Arguments of tool calls are JSON text in
 * OpenAI's API, which most templates would print as a string; one that is not a JSON object stays
 * what it is. A message of calls has content null there, for which some templates need an empty
 * text. Parts of text become one text for a template that would leave them out, those of
 * thinking the message's reasoning_content, and text a part.
 */
export function prepareMessages(messages: readonly ChatMessage[], forms: MessageForms): readonly ChatMessage[] {
  const convert = forms.arguments === "object" ? toObject : toText;
  const prepareCall = (call: unknown): unknown => {
    if (!isJsonObject(call)) return call;
    const { function: callee, arguments: args } = call;
    if (isJsonObject(callee)) return replace(call, "function", prepareCall(callee));
    return args === undefined ? call : replace(call, "arguments", convert(args));
  };
  const prepareContent = (message: ChatMessage): ChatMessage => {
    const { content, tool_calls: calls } = message;
    if (forms.needsContent && (content ?? null) === null && Array.isArray(calls) && calls.length > 0)
      return replace(message, "content", "");
    if (forms.content === "text" && Array.isArray(content)) return joinParts(message, content);
    if (forms.content !== "parts" || typeof content !== "string") return message;
    return replace(message, "content", [{ type: "text", text: content }]);
  };
  const prepareMessage = (message: ChatMessage) => {
    const { tool_calls: calls } = message;
    const prepared = prepareContent(message);
    return Array.isArray(calls) && calls.length > 0
      ? replace(prepared, "tool_calls", calls.map(prepareCall))
      : prepared;
  };
  const prepared = messages.map(prepareMessage);
  return prepared.every((message, i) => message === messages[i]) ? messages : prepared;
}

const isText = ({ type, text }: ContentPart) => (type === undefined || type === "text") && typeof text === "string";

/** Returns a message whose parts are texts; one with other parts stays what it is. */
function joinParts(message: ChatMessage, parts: readonly ContentPart[]): ChatMessage {
  const texts = parts.filter(isText).map(({ text }) => text);
  const thoughts = parts.flatMap((part) => readThinking(part) ?? []);
  if (texts.length + thoughts.length < parts.length) return message;
  const joined = replace(message, "content", texts.join(""));
  return thoughts.length === 0 ? joined : replace(joined, "reasoning_content", thoughts.join(""));
}

/** Returns the text of a part with thinking, in Anthropic's or Mistral's form. */
function readThinking({ type, thinking }: ContentPart): string | undefined {
  if (type !== "thinking") return undefined;
  if (typeof thinking === "string") return thinking;
  const parts = Array.isArray(thinking) ? (thinking as readonly ContentPart[]) : undefined;
  return parts?.every(isText) === true ? parts.map(({ text }) => text).join("") : undefined;
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
