import { fs } from "#platform";
import { errorMessage, LlamaGymError } from "../../core/errors.js";
import { toReadError } from "../../models/files/file-errors.js";
import type { ChatMessage, ToolDefinition } from "../../models/text/index.js";
import type { SftExample } from "./sft-example.js";

/** Options of `readExamples`. */
export interface ReadExamplesOptions {
  /** Whether an invalid line throws (the default) or is skipped. */
  readonly onInvalidLine?: "error" | "skip";
  /** How text prompts and completions are read: as one text (the default), or as a user and an assistant message. */
  readonly prompts?: "text" | "chat";
}

/** An invalid line of a JSONL file. */
export interface InvalidLine {
  /** Line number, from 1. */
  readonly line: number;
  readonly reason: string;
}

/** Examples read from a file, with its invalid lines. */
export interface ReadExamples {
  readonly examples: readonly SftExample[];
  readonly invalidLines: readonly InvalidLine[];
}

/** Keys of prompts and completions, in order of precedence. */
const PROMPT_KEYS = ["prompt", "instruction", "question", "input"];
const COMPLETION_KEYS = ["completion", "output", "response", "answer"];

/** Roles by their ShareGPT names. */
const SHAREGPT_ROLES: Readonly<Record<string, string>> = { human: "user", gpt: "assistant" };

/** The JSON object of a line. */
type LineFields = Readonly<Record<string, unknown>>;

/**
 * Reads examples from a JSONL file of objects with `messages` (or ShareGPT's `conversations`), a prompt (`prompt`,
 * `instruction`, `question`, `input`) and a completion (`completion`, `output`, `response`, `answer`), `text`, or
 * `tokens` and `mask`. A `system` text precedes the prompt. Empty lines are ignored.
 * @throws FILE_NOT_FOUND, FILE_READ_FAILED, and FILE_CORRUPT with the line number.
 */
export async function readExamples(
  path: string,
  { onInvalidLine = "error", prompts = "text" }: ReadExamplesOptions = {},
): Promise<ReadExamples> {
  const read = await readJsonLines(path, { onInvalidLine }, (fields, line) => ({
    ...readExample(fields, prompts),
    source: `${path}, line ${line}`,
  }));
  return { examples: read.values, invalidLines: read.invalidLines };
}

/**
 * Reads a JSONL file by calling `read` with each line's object; a line for which it throws is invalid. Empty lines are ignored.
 *
 * @throws FILE_NOT_FOUND, FILE_READ_FAILED, and FILE_CORRUPT with the line number.
 */
export async function readJsonLines<Value>(
  path: string,
  { onInvalidLine = "error" }: Pick<ReadExamplesOptions, "onInvalidLine">,
  read: (fields: LineFields, line: number) => Value,
): Promise<{ readonly values: readonly Value[]; readonly invalidLines: readonly InvalidLine[] }> {
  const values: Value[] = [];
  const invalidLines: InvalidLine[] = [];
  let line = 0;
  try {
    for await (const text of fs.readLines(path)) {
      line++;
      if (text.trim() === "") continue;
      try {
        values.push(read(parseObject(text), line));
      } catch (error) {
        const reason = errorMessage(error);
        if (onInvalidLine === "error")
          throw new LlamaGymError("FILE_CORRUPT", `${path}, line ${line}: ${reason}`, { cause: error });
        invalidLines.push({ line, reason });
      }
    }
  } catch (error) {
    throw toReadError(path, error);
  }
  return { values, invalidLines };
}

function parseObject(text: string): LineFields {
  let value: unknown;
  try {
    // A byte order mark may precede the first line.
    value = JSON.parse(text.replace(/^\uFEFF/, ""));
  } catch (error) {
    throw new Error(`invalid JSON (${errorMessage(error)}).`, { cause: error });
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as LineFields;
  throw new Error('the line must be a JSON object, such as { "messages": [...] }.');
}

/** Reads the example of a line. @throws Error with the reason, for an object that is not an example. */
export function readExample(fields: LineFields, prompts: "text" | "chat"): SftExample {
  if (fields.messages !== undefined || fields.conversations !== undefined) return parseChatExample(fields);
  if (fields.tokens !== undefined) return parseTokenExample(fields);
  const completion = firstValue(fields, COMPLETION_KEYS);
  const prompt = firstValue(fields, PROMPT_KEYS);
  if (completion !== undefined && prompt !== undefined)
    return parseCompletionExample(fields, prompt, completion, prompts);
  if (typeof fields.text === "string") return { prompt: "", completion: fields.text };
  const keys = Object.keys(fields).join(", ");
  throw new Error(
    `it must have "messages", a prompt (${PROMPT_KEYS.join(", ")}) with a completion (${COMPLETION_KEYS.join(", ")}), ` +
      `"text" or "tokens"; its keys are ${keys === "" ? "none" : keys}.`,
  );
}

function parseChatExample({ messages, conversations, tools }: LineFields): SftExample {
  const list = parseMessages(messages ?? conversations);
  if (!list.some(({ role }) => role === "assistant")) throw new Error("there is no assistant message.");
  return Array.isArray(tools) ? { messages: list, tools: tools as ToolDefinition[] } : { messages: list };
}

function parseMessages(value: unknown): ChatMessage[] {
  if (!Array.isArray(value) || value.length === 0) throw new Error("messages must be a non-empty array.");
  return value.map((message: unknown, i) => {
    const { from, value: content, ...fields } = message as LineFields;
    const role = fields.role ?? (typeof from === "string" ? (SHAREGPT_ROLES[from] ?? from) : undefined);
    if (typeof role !== "string") throw new Error(`message ${i + 1} has no role.`);
    return { content: content as string, ...fields, role };
  });
}

function parseCompletionExample(
  fields: LineFields,
  prompt: unknown,
  completion: unknown,
  prompts: "text" | "chat",
): SftExample {
  const { system } = fields;
  const isText = typeof prompt === "string" && typeof completion === "string";
  if (isText && prompts === "text" && system === undefined) return { prompt: appendInput(fields, prompt), completion };
  const promptMessages =
    typeof prompt === "string" ? [{ role: "user", content: appendInput(fields, prompt) }] : parseMessages(prompt);
  const withSystem =
    typeof system === "string" ? [{ role: "system", content: system }, ...promptMessages] : promptMessages;
  const completionMessages =
    typeof completion === "string" ? [{ role: "assistant", content: completion }] : parseMessages(completion);
  return { prompt: withSystem, completion: completionMessages };
}

function appendInput({ instruction, input }: LineFields, prompt: string): string {
  return prompt === instruction && typeof input === "string" && input !== "" ? `${prompt}\n\n${input}` : prompt;
}

function parseTokenExample({ tokens, mask: lossMask }: LineFields): SftExample {
  const isIntegerArray = (list: unknown): list is number[] =>
    Array.isArray(list) && list.every((item) => Number.isSafeInteger(item));
  if (isIntegerArray(tokens) && isIntegerArray(lossMask) && tokens.length === lossMask.length)
    return { tokens, lossMask };
  throw new Error('"tokens" and "mask" must be arrays of integers of equal length.');
}

function firstValue(fields: LineFields, keys: readonly string[]): unknown {
  return keys.map((key) => fields[key]).find((value) => typeof value === "string" || Array.isArray(value));
}
