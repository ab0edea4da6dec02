import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import { LlamaGymError } from "../../core/errors.js";
import type { ChatMessage, ToolDefinition } from "../../models/text/index.js";
import type { SftExample } from "./sft-example.js";

export interface ReadExamplesOptions {
  /** What a line that holds no example does: ends the reading with an error (the default), or is left out. */
  readonly onInvalidLine?: "error" | "skip";
  /**
   * What prompt and completion are where they are texts: "text" (the default) goes on with one another, "chat" are a user's
   * message and the assistant's reply.
   */
  readonly prompts?: "text" | "chat";
}

/** A line that holds no example, and why. */
export interface InvalidLine {
  /** From 1. */
  readonly line: number;
  readonly reason: string;
}

export interface ReadExamples {
  readonly examples: readonly SftExample[];
  readonly invalidLines: readonly InvalidLine[];
}

/** Keys under which a prompt and its completion are found, the first that is there. */
const PROMPT_KEYS = ["prompt", "instruction", "question", "input"];
const COMPLETION_KEYS = ["completion", "output", "response", "answer"];

/** ShareGPT's names of the roles. */
const SHAREGPT_ROLES: Readonly<Record<string, string>> = { human: "user", gpt: "assistant" };

/** A line's JSON object. */
type LineFields = Readonly<Record<string, unknown>>;

/**
 * Reads examples from a file with one JSON object a line: { messages } (or conversations, as ShareGPT writes them), a prompt
 * (prompt, instruction, question, input) and a completion (completion, output, response, answer), { text }, or
 * { tokens, mask }. A "system" beside a prompt comes before it; empty lines are nothing.
 * Throws FILE_NOT_FOUND, FILE_READ_FAILED, and FILE_CORRUPT with the line's number.
 */
export async function readExamples(
  path: string,
  { onInvalidLine = "error", prompts = "text" }: ReadExamplesOptions = {},
): Promise<ReadExamples> {
  const read = await readJsonLines(path, { onInvalidLine }, (fields) => readExample(fields, prompts));
  return { examples: read.values, invalidLines: read.invalidLines };
}

/**
 * What `read` makes of each line's JSON object; a line for which it throws is broken. Lines count from 1, empty ones are nothing.
 * Throws FILE_NOT_FOUND, FILE_READ_FAILED, and FILE_CORRUPT with the line's number.
 */
export async function readJsonLines<Value>(
  path: string,
  { onInvalidLine = "error" }: Pick<ReadExamplesOptions, "onInvalidLine">,
  read: (fields: LineFields, line: number) => Value,
): Promise<{ readonly values: readonly Value[]; readonly invalidLines: readonly InvalidLine[] }> {
  const values: Value[] = [];
  const invalidLines: InvalidLine[] = [];
  let line = 0;
  for await (const text of readLines(path)) {
    line++;
    if (text.trim() === "") continue;
    try {
      values.push(read(parseObject(text), line));
    } catch (error) {
      const reason = (error as Error).message;
      if (onInvalidLine === "error") {
        throw new LlamaGymError("FILE_CORRUPT", `${path}, line ${line}: ${reason}`, { cause: error });
      }
      invalidLines.push({ line, reason });
    }
  }
  return { values, invalidLines };
}

async function* readLines(path: string): AsyncGenerator<string> {
  const stream = createReadStream(path, "utf8");
  try {
    let first = true;
    for await (const line of createInterface({ input: stream, crlfDelay: Infinity })) {
      yield first ? line.replace(/^\uFEFF/, "") : line;
      first = false;
    }
  } catch (error) {
    if (!(error instanceof Error) || !("code" in error)) throw error;
    if (error.code === "ENOENT")
      throw new LlamaGymError("FILE_NOT_FOUND", `There is no file ${path}.`, { cause: error });
    throw new LlamaGymError("FILE_READ_FAILED", `${path} cannot be read: ${error.message}`, { cause: error });
  } finally {
    stream.destroy();
  }
}

function parseObject(text: string): LineFields {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Error(`this is not JSON (${(error as Error).message}).`, { cause: error });
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as LineFields;
  throw new Error('a line must hold a JSON object, such as { "messages": [...] }.');
}

/** The example that a line's object holds. Throws an Error that says why there is none. */
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
    `it has neither "messages", nor a prompt (${PROMPT_KEYS.join(", ")}) with a completion (${COMPLETION_KEYS.join(", ")}), ` +
      `"text" or "tokens"; its keys are ${keys === "" ? "none" : keys}.`,
  );
}

function parseChatExample({ messages, conversations, tools }: LineFields): SftExample {
  const list = parseMessages(messages ?? conversations);
  if (!list.some(({ role }) => role === "assistant")) throw new Error("no message is the assistant's.");
  return Array.isArray(tools) ? { messages: list, tools: tools as ToolDefinition[] } : { messages: list };
}

function parseMessages(value: unknown): ChatMessage[] {
  if (!Array.isArray(value) || value.length === 0) throw new Error("its messages are not a list, or an empty one.");
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
  if (isText && prompts === "text" && system === undefined) {
    return { prompt: appendInput(fields, prompt), completion };
  }
  const promptMessages =
    typeof prompt === "string" ? [{ role: "user", content: appendInput(fields, prompt) }] : parseMessages(prompt);
  const withSystem =
    typeof system === "string" ? [{ role: "system", content: system }, ...promptMessages] : promptMessages;
  const completionMessages =
    typeof completion === "string" ? [{ role: "assistant", content: completion }] : parseMessages(completion);
  return { prompt: withSystem, completion: completionMessages };
}

/** An instruction may come with an input that it is about. */
function appendInput({ instruction, input }: LineFields, prompt: string): string {
  return prompt === instruction && typeof input === "string" && input !== "" ? `${prompt}\n\n${input}` : prompt;
}

function parseTokenExample({ tokens, mask: lossMask }: LineFields): SftExample {
  const isIntegerArray = (list: unknown): list is number[] =>
    Array.isArray(list) && list.every((item) => Number.isSafeInteger(item));
  if (isIntegerArray(tokens) && isIntegerArray(lossMask) && tokens.length === lossMask.length)
    return { tokens, lossMask };
  throw new Error('"tokens" and "mask" must be lists of whole numbers of the same length.');
}

function firstValue(fields: LineFields, keys: readonly string[]): unknown {
  return keys.map((key) => fields[key]).find((value) => typeof value === "string" || Array.isArray(value));
}
