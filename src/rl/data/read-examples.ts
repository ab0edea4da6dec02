import { checkOptions } from "../../core/settings.js";
import { isJsonObject, type JsonObject } from "../../core/json.js";
import { RESERVED_VARIABLES, type ChatMessage } from "../../models/text/index.js";
import { readJsonField } from "./read-json-field.js";
import { isMessage, readMessages, readTextOrMessages } from "./read-messages.js";
import { readRows, type InvalidLine, type ReadRowsOptions, type RowFields } from "./read-rows.js";
import { readTokenExample, TOKEN_KEYS } from "./read-token-example.js";
import type { SftExample, TemplateInputs } from "./sft-example.js";

export type { InvalidLine } from "./read-rows.js";

/** Options of `readExamples`. */
export interface ReadExamplesOptions extends ReadRowsOptions {
  /**
   * How text prompts and completions are read: as one text (the default), or as a user and an
   * assistant message.
   */
  readonly prompts?: "text" | "chat";
}

/** Examples read from a file, with its invalid lines. */
export interface ReadExamples {
  readonly examples: readonly SftExample[];
  readonly invalidLines: readonly InvalidLine[];
  /** Columns with values that are not part of any example. */
  readonly unusedColumns: readonly string[];
}

/** Keys of prompts and completions, in order of precedence. */
export const PROMPT_KEYS = ["prompt", "instruction", "question", "query", "input"];
export const COMPLETION_KEYS = ["completion", "output", "response", "answer"];
export const MESSAGE_KEYS = ["messages", "conversations"];
const SYSTEM_KEYS = ["system", "system_prompt", "system_message"];
/** Columns of all examples that a chat template renders. */
export const TEMPLATE_KEYS = [...SYSTEM_KEYS, "tools", "functions", "tool_choice", "chat_template_kwargs"];
/** Columns that some trainers read as the weight of a row. */
const WEIGHT_KEYS = ["weight", "train", "loss_weight", "sample_weight"];
/** Columns of media, which no text model reads. */
const MEDIA_KEYS = ["image", "images", "video", "videos", "audio", "audios"];
/** Columns of demonstrations. */
const DEMONSTRATION_KEYS = ["env", "return", "infos"];

/** An example and the columns that it is made of. */
interface ReadExample {
  readonly example: SftExample;
  readonly usedColumns: readonly string[];
}

/**
 * Reads examples from a JSONL, JSON or CSV file of objects with `messages` (or ShareGPT's
 * `conversations`), a prompt (`prompt`, `instruction`, `question`, `query`, `input`) and a
 * completion (`completion`, `output`, `response`, `answer`), `text`, or tokens (`input_ids` and
 * `labels`, or `tokens` and `mask`). A `system` text precedes messages and prompts, `context`
 * follows a prompt, `history` has earlier questions and answers; `tools` and
 * `chat_template_kwargs` are for the chat template.
 * @throws FILE_NOT_FOUND, FILE_READ_FAILED, FORMAT_UNSUPPORTED, and FILE_CORRUPT with the line
 * number.
 */
export async function readExamples(path: string, options: ReadExamplesOptions = {}): Promise<ReadExamples> {
  checkOptions("readExamples", options, { onInvalidLine: true, prompts: true });
  const { onInvalidLine = "error", prompts = "text" } = options;
  const unused = new Set<string>();
  const read = await readRows(path, { onInvalidLine }, (fields, source): SftExample => {
    const { example, usedColumns } = readExample(fields, prompts);
    const known = [...usedColumns, ...DEMONSTRATION_KEYS];
    for (const key of Object.keys(withoutNulls(fields))) if (!known.includes(key)) unused.add(key);
    return { ...example, source };
  });
  return { examples: read.values, invalidLines: read.invalidLines, unusedColumns: [...unused] };
}

/**
 * Reads the example of a row, in which null means nothing. @throws Error with the reason, for an
 * object that is not an example.
 */
export function readExample(row: RowFields, prompts: "text" | "chat"): ReadExample {
  const fields = withoutNulls(row);
  rejectMedia(fields);
  rejectWeights(fields);
  const messagesKey = MESSAGE_KEYS.find((key) => fields[key] !== undefined);
  if (messagesKey !== undefined)
    return { example: readChatExample(fields, messagesKey), usedColumns: [messagesKey, ...TEMPLATE_KEYS] };
  if (fields.tokens !== undefined || fields.input_ids !== undefined)
    return { example: readTokenExample(fields), usedColumns: TOKEN_KEYS };
  const completionKey = findText(fields, COMPLETION_KEYS);
  const promptKey = findText(fields, PROMPT_KEYS);
  if (completionKey !== undefined && promptKey !== undefined)
    return readCompletionExample(fields, promptKey, completionKey, prompts);
  if (typeof fields.text === "string")
    return { example: { prompt: "", completion: fields.text }, usedColumns: ["text"] };
  if (fields.chosen !== undefined && fields.rejected !== undefined)
    throw new Error('it has "chosen" and "rejected": train preferences by llamagym dpo, or rename "chosen".');
  const keys = Object.keys(row).join(", ");
  throw new Error(
    `it must have "messages", a prompt (${PROMPT_KEYS.join(", ")}) with a completion (${COMPLETION_KEYS.join(", ")}), ` +
      `"text", "input_ids" or "tokens"; its keys are ${keys === "" ? "none" : keys}.`,
  );
}

/** @throws Error for a row with images, video or audio. */
export function rejectMedia(fields: RowFields): void {
  const media = MEDIA_KEYS.find((key) => isFilled(fields[key]));
  if (media !== undefined) throw new Error(`"${media}" is not supported; only text is trained.`);
}

/** @throws Error for a row that is trained less than others, or is an example of what not to write. */
function rejectWeights(fields: RowFields): void {
  const isOne = (value: unknown) => value === true || Number(value) === 1;
  const isWeight = (value: unknown) =>
    ["boolean", "number"].includes(typeof value) || (typeof value === "string" && /^\s*[\d.]+\s*$/.test(value));
  const key = WEIGHT_KEYS.find((name) => fields[name] !== undefined && isWeight(fields[name]) && !isOne(fields[name]));
  if (key !== undefined)
    throw new Error(
      `it has the "${key}" ${String(fields[key])}, but only messages have one. Remove the row or the column.`,
    );
  if (fields.label === false || /^false$/i.test(String(fields.label)))
    throw new Error('its "label" is false: train rows with labels by llamagym kto, or remove the row or the column.');
}

/**
 * Returns the columns that have a value: in rows of several forms, those of the other forms are
 * null.
 */
export const withoutNulls = (fields: RowFields): RowFields =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null && value !== undefined));

const isFilled = (value: unknown) =>
  value !== undefined && value !== "" && !(Array.isArray(value) && value.length === 0);

function readChatExample(fields: RowFields, key: string): SftExample {
  const messages = prependSystem(fields, readMessages(fields[key]));
  if (!messages.some(({ role }) => role === "assistant")) throw new Error("there is no assistant message.");
  return { messages, ...readTemplateInputs(fields, key === "conversations") };
}

/** Returns the text of a row's system message; undefined without one. */
export function readSystem(fields: RowFields): string | undefined {
  const [key, other] = SYSTEM_KEYS.filter((name) => isFilled(fields[name]));
  if (key === undefined) return undefined;
  const system = fields[key];
  if (typeof system !== "string") throw new Error(`"${key}" must be text.`);
  if (other !== undefined && fields[other] !== system)
    throw new Error(`it has "${key}" and "${other}" with other text. Remove one of them.`);
  return system;
}

/** Adds the system message of a row's columns. */
export function prependSystem(fields: RowFields, messages: readonly ChatMessage[]): readonly ChatMessage[] {
  const system = readSystem(fields);
  if (system === undefined) return messages;
  if (messages[0].role !== "system") return [{ role: "system", content: system }, ...messages];
  if (messages[0].content === system) return messages;
  throw new Error('it has "system" and a system message with another text. Remove one of them.');
}

/**
 * Reads what a row gives the chat template. Functions without a type are wrapped where the form of
 * the row has no other ones.
 */
export function readTemplateInputs(fields: RowFields, isWrapped: boolean): TemplateInputs {
  const given = ["tools", "functions"].filter((key) => isFilled(fields[key]));
  if (given.length > 1) throw new Error('it has both "tools" and "functions". Remove one of them.');
  const [key] = given;
  const tools = key === undefined ? [] : readField(key, fields[key]);
  if (!Array.isArray(tools) || !tools.every(isJsonObject))
    throw new Error(`"${key}" must be an array of JSON schemas of functions, or its JSON text.`);
  const wrap = (tool: JsonObject) =>
    (isWrapped || key === "functions") && tool.function === undefined ? { type: "function", function: tool } : tool;
  const variables = readField("chat_template_kwargs", fields.chat_template_kwargs ?? {});
  if (!isJsonObject(variables)) throw new Error('"chat_template_kwargs" must be an object of template variables.');
  const reserved = RESERVED_VARIABLES.find((name) => name in variables);
  if (reserved !== undefined) throw new Error(`"chat_template_kwargs" must not have "${reserved}".`);
  return {
    ...(tools.length > 0 && { tools: tools.map(wrap) }),
    ...(isFilled(fields.tool_choice) && { toolChoice: readToolChoice(fields.tool_choice) }),
    ...(Object.keys(variables).length > 0 && { variables }),
  };
}

/** Reads whether an answer must be a call; a named function, and Anthropic's "any", require one. */
function readToolChoice(value: unknown): TemplateInputs["toolChoice"] {
  const choice = isJsonObject(value) ? value.type : value;
  if (choice === "auto" || choice === "none") return "auto";
  if (choice === "required" || choice === "any" || choice === "function" || choice === "tool") return "required";
  throw new Error(`"tool_choice" must be "auto", "none", "required" or a function, got ${JSON.stringify(value)}.`);
}

function readField(name: string, value: unknown): unknown {
  try {
    return readJsonField(name, value);
  } catch (error) {
    throw new Error(`it ${(error as Error).message}.`, { cause: error });
  }
}

function readCompletionExample(
  fields: RowFields,
  promptKey: string,
  completionKey: string,
  prompts: "text" | "chat",
): ReadExample {
  const [prompt, completion] = [promptKey, completionKey].map((key) => readTextOrMessages(key, fields[key]));
  const isAlpaca = promptKey === "instruction";
  checkSingle(fields, PROMPT_KEYS, isAlpaca ? ["instruction", "input"] : [promptKey]);
  checkSingle(fields, COMPLETION_KEYS, [completionKey]);
  const textColumns = typeof prompt === "string" ? ["context", ...(isAlpaca ? ["input"] : [])] : [];
  const usedColumns = [promptKey, completionKey, "history", ...textColumns, ...TEMPLATE_KEYS];
  const inputs = readTemplateInputs(fields, false);
  const history = readHistory(fields.history);
  const isText = typeof prompt === "string" && typeof completion === "string";
  const isPlain = history.length === 0 && readSystem(fields) === undefined && Object.keys(inputs).length === 0;
  if (isText && prompts === "text" && isPlain)
    return { example: { prompt: appendInput(fields, prompt), completion }, usedColumns };
  const promptMessages = typeof prompt === "string" ? [{ role: "user", content: appendInput(fields, prompt) }] : prompt;
  const completionMessages = typeof completion === "string" ? [{ role: "assistant", content: completion }] : completion;
  // The answers of the history are trained, as in LLaMA-Factory.
  const example =
    history.length > 0
      ? { messages: prependSystem(fields, [...history, ...promptMessages, ...completionMessages]), ...inputs }
      : { prompt: prependSystem(fields, promptMessages), completion: completionMessages, ...inputs };
  return { example, usedColumns };
}

/**
 * @throws Error if a row has several prompts or completions, of which all but one would be lost.
 */
export function checkSingle(fields: RowFields, keys: readonly string[], used: readonly string[]): void {
  const other = keys.find((key) => isFilled(fields[key]) && !used.includes(key));
  if (other === undefined) return;
  throw new Error(`it has both "${used[0]}" and "${other}". Remove or rename one of them.`);
}

/** Reads earlier questions and answers: LLaMA-Factory's list of pairs. */
function readHistory(value: unknown): ChatMessage[] {
  const pairs = readField("history", value ?? []);
  const isPair = (pair: unknown): pair is readonly [string, string] =>
    Array.isArray(pair) && pair.length === 2 && pair.every((text) => typeof text === "string");
  if (!Array.isArray(pairs) || !pairs.every(isPair))
    throw new Error('"history" must be an array of pairs of texts, each a question and its answer.');
  return pairs.flatMap(([question, answer]) => [
    { role: "user", content: question },
    { role: "assistant", content: answer },
  ]);
}

/** Appends the `input` of an instruction, and the `context` of any prompt, as Dolly has it. */
export function appendInput({ instruction, input, context }: RowFields, prompt: string): string {
  if (isFilled(context) && typeof context !== "string") throw new Error('"context" must be text.');
  return [prompt, prompt === instruction ? input : "", context]
    .filter((text, i) => i === 0 || (typeof text === "string" && text !== ""))
    .join("\n\n");
}

/** Returns the first key whose value is a text, a message or a list. */
export const findText = (fields: RowFields, keys: readonly string[]) =>
  keys.find((key) => typeof fields[key] === "string" || Array.isArray(fields[key]) || isMessage(fields[key]));
