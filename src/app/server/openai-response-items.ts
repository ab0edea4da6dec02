import * as z from "zod";
import { asJsonObject } from "../../core/json.js";
import type { ChatMessage } from "../../models/text/index.js";
import { argumentsParser, invalidField, jsonObject, listOf, textContent, toTemplateCall } from "./wire-format.js";

const message = z.object({
  type: z.literal("message").optional(),
  role: z.enum(["system", "developer", "user", "assistant"]),
  content: textContent,
});
const functionCall = z.object({
  type: z.literal("function_call"),
  call_id: z.string(),
  name: z.string(),
  namespace: z.string().nullish(),
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
const reasoning = z.object({
  type: z.literal("reasoning"),
  content: listOf(z.looseObject({ type: z.string(), text: z.string().nullish() })).nullish(),
});
/** What a vendor's model has searched, and has written about. */
const searchCall = z.object({ type: z.literal("web_search_call") });
export const inputItem = z.union([functionCall, customCall, shellCall, callOutput, reasoning, searchCall, message], {
  error: "must be a message, reasoning, or a call of a function or custom tool or its output",
});
type InputItem = z.infer<typeof inputItem>;

const ITEM_TYPES = "message reasoning function_call custom_tool_call local_shell_call web_search_call"
  .split(" ")
  .concat(callOutput.shape.type.options);

const COMPACTED = "has a conversation that only the vendor's models read: send the conversation itself";
/** Why items that other servers accept are refused. */
const REFUSED_ITEMS = new Map<unknown, string>([
  ["compaction", COMPACTED],
  ["compaction_summary", COMPACTED],
  ["context_compaction", COMPACTED],
  ["item_reference", "refers to a response, but none is stored here: send the item itself"],
  ["tool_search_call", "is not supported: list the tools in `tools`"],
  ["tool_search_output", "is not supported: list the tools in `tools`"],
]);

/** @throws RequestError for an item of a type that is not read, with what to send instead. */
export function checkItemTypes(input: unknown): void {
  if (!Array.isArray(input)) return;
  (input as readonly unknown[]).forEach((item, i) => {
    const { type, role, id } = asJsonObject(item) ?? {};
    const kind = type ?? (role === undefined && id !== undefined ? "item_reference" : "message");
    if (typeof kind !== "string" || ITEM_TYPES.includes(kind)) return;
    throw invalidField(`input[${i}]`, `${JSON.stringify(kind)} ${REFUSED_ITEMS.get(kind) ?? "is not supported"}`);
  });
}

/** Returns the name of a tool in the prompt, which has no namespaces. */
export const qualifyName = (name: string, space: string | null | undefined) =>
  typeof space === "string" ? `${space}.${name}` : name;

/** Whether an item has nothing for the prompt: a search, or reasoning without text or answer. */
export function isUnread(item: InputItem, next: InputItem | undefined): boolean {
  if (item.type === "web_search_call") return true;
  return item.type === "reasoning" && (readReasoning(item) === "" || next === undefined || isUsers(next));
}

/** Whether an item is not the assistant's. */
const isUsers = (item: InputItem) => "output" in item || ("role" in item && item.role !== "assistant");

/** Returns the text of reasoning; that of a vendor is encrypted. */
function readReasoning({ content }: z.infer<typeof reasoning>): string {
  return (content ?? []).flatMap(({ text }) => (typeof text === "string" ? [text] : [])).join("");
}

/**
 * Converts items to messages; consecutive calls, with the reasoning and the text before them, are
 * one message of the assistant.
 */
export function toTemplateMessages(input: string | readonly InputItem[]): ChatMessage[] {
  if (typeof input === "string") return [{ role: "user", content: input }];
  const messages: ChatMessage[] = [];
  const parseArguments = argumentsParser();
  let thoughts: string[] = [];
  const takeThoughts = (earlier?: unknown) => {
    const texts = [...(typeof earlier === "string" ? [earlier] : []), ...thoughts];
    thoughts = [];
    return texts.length > 0 && { reasoning_content: texts.join("\n") };
  };
  input.forEach((item) => {
    if (item.type === "web_search_call") return;
    if (item.type === "reasoning") {
      const text = readReasoning(item);
      if (text !== "") thoughts.push(text);
      return;
    }
    if (isUsers(item)) thoughts = [];
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
        ...takeThoughts(isAssistant ? last.reasoning_content : undefined),
        tool_calls: [...calls, call],
      });
    } else if ("role" in item) {
      const role = item.role === "developer" ? "system" : item.role;
      messages.push({ role, content: item.content, ...(role === "assistant" && takeThoughts()) });
    }
  });
  return messages;
}

/** Returns the call of an item; those of custom tools and of the shell are calls with an object. */
function readCall(item: InputItem, parseArguments: (text: string) => unknown): object | undefined {
  switch (item.type) {
    case "function_call":
      return toTemplateCall(item.call_id, qualifyName(item.name, item.namespace), parseArguments(item.arguments));
    case "custom_tool_call":
      return toTemplateCall(item.call_id, item.name, { input: item.input });
    case "local_shell_call":
      return toTemplateCall(item.call_id, "local_shell", item.action);
    default:
      return undefined;
  }
}
