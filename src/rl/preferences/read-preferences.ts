import type { ChatMessage } from "../../models/text/index.js";
import { excerpt } from "../../core/format.js";
import type { PreferenceExample, UnpairedPreferenceExample } from "./preference-example.js";
import {
  appendInput,
  checkSingle,
  COMPLETION_KEYS,
  findText,
  MESSAGE_KEYS,
  prependSystem,
  readSystem,
  PROMPT_KEYS,
  readTemplateInputs,
  rejectMedia,
  TEMPLATE_KEYS,
  withoutNulls,
  type InvalidLine,
  type ReadExamplesOptions,
} from "../data/read-examples.js";
import { readMessages, readTextOrMessages, type TextOrMessages } from "../data/read-messages.js";
import { readRows, type RowFields } from "../data/read-rows.js";

/** Examples read from a file, with its invalid lines. */
export interface ReadPreferences<Example> {
  readonly examples: readonly Example[];
  readonly invalidLines: readonly InvalidLine[];
  /** Columns with values that are not part of any example. */
  readonly unusedColumns: readonly string[];
}

interface ReadRow<Example> {
  readonly example: Example;
  readonly usedColumns: readonly string[];
}

const PAIR_KEYS = ["chosen", "rejected"];

/**
 * Reads pairs from a JSONL, JSON or CSV file: `chosen` and `rejected`, as texts or messages, with a
 * prompt as in `readExamples` or with one that both begin with. `messages` or `conversations` with
 * `chosen` and `rejected` are the prompt.
 * @throws as `readExamples`
 */
export async function readPreferences(
  path: string,
  options: ReadExamplesOptions = {},
): Promise<ReadPreferences<PreferenceExample>> {
  return readAll(path, options, (fields, prompts) => readPair(fields, prompts));
}

/**
 * Reads labeled completions: a prompt and a completion as in `readExamples` and a `label` of true
 * or false. Rows with `chosen` and `rejected` are read as one desirable and one undesirable
 * completion.
 * @throws as `readExamples`
 */
export async function readUnpairedPreferences(
  path: string,
  options: ReadExamplesOptions = {},
): Promise<ReadPreferences<UnpairedPreferenceExample>> {
  const { examples, ...read } = await readAll(path, options, (fields, prompts) => {
    if (PAIR_KEYS.every((key) => fields[key] === undefined)) {
      const { example, usedColumns } = readLabeled(fields, prompts);
      return { example: [example], usedColumns };
    }
    const { example, usedColumns } = readPair(fields, prompts);
    return { example: splitPair(example), usedColumns };
  });
  return { ...read, examples: examples.flat() };
}

function splitPair({ chosen, rejected, ...example }: PreferenceExample): UnpairedPreferenceExample[] {
  return [
    { ...example, completion: chosen, label: true },
    { ...example, completion: rejected, label: false },
  ];
}

async function readAll<Example extends object>(
  path: string,
  { onInvalidLine = "error", prompts = "text" }: ReadExamplesOptions,
  read: (fields: RowFields, prompts: "text" | "chat") => ReadRow<Example>,
): Promise<ReadPreferences<Example>> {
  const unused = new Set<string>();
  const { values, invalidLines } = await readRows(path, { onInvalidLine }, (row, source) => {
    const fields = withoutNulls(row);
    rejectMedia(fields);
    const { example, usedColumns } = read(fields, prompts);
    for (const key of Object.keys(fields)) if (!usedColumns.includes(key)) unused.add(key);
    return Array.isArray(example)
      ? (example.map((item: object) => ({ ...item, source })) as unknown as Example)
      : { ...example, source };
  });
  return { examples: values, invalidLines, unusedColumns: [...unused] };
}

function readPair(fields: RowFields, prompts: "text" | "chat"): ReadRow<PreferenceExample> {
  for (const key of PAIR_KEYS)
    if (fields[key] === undefined)
      throw new Error(
        `it must have "chosen" and "rejected", with a prompt or beginning alike; its keys are ${Object.keys(fields).join(", ") || "none"}.`,
      );
  const [chosen, rejected] = PAIR_KEYS.map((key) => readTextOrMessages(key, fields[key]));
  const { prompt, usedColumns } = readPrompt(fields);
  const inputs = readTemplateInputs(fields, false);
  const columns = [...PAIR_KEYS, ...usedColumns, ...TEMPLATE_KEYS];
  const isImplicit = prompt === undefined || holdsPrompt(chosen, prompt);
  const pair = isImplicit ? extractPrompt(chosen, rejected) : { prompt, chosen, rejected };
  // A prompt that is the beginning of two texts has its own format, so it is no chat message.
  const form = isImplicit ? "text" : prompts;
  return { example: { ...toForm(pair, fields, form, inputs), ...inputs }, usedColumns: columns };
}

function readLabeled(fields: RowFields, prompts: "text" | "chat"): ReadRow<UnpairedPreferenceExample> {
  const { label } = fields;
  const completionKey = findText(fields, COMPLETION_KEYS);
  const { prompt, usedColumns } = readPrompt(fields);
  if (completionKey === undefined || prompt === undefined || label === undefined)
    throw new Error(
      `it must have a prompt (${PROMPT_KEYS.join(", ")}), a completion (${COMPLETION_KEYS.join(", ")}) and "label", or "chosen" and "rejected"; ` +
        `its keys are ${Object.keys(fields).join(", ") || "none"}.`,
    );
  checkSingle(fields, COMPLETION_KEYS, [completionKey]);
  const inputs = readTemplateInputs(fields, false);
  const read = { prompt, completion: readTextOrMessages(completionKey, fields[completionKey]) };
  return {
    example: { ...toForm(read, fields, prompts, inputs), ...inputs, label: readLabel(label) },
    usedColumns: [completionKey, "label", ...usedColumns, ...TEMPLATE_KEYS],
  };
}

/** Reads a label; CSV files have it as text. */
function readLabel(value: unknown): boolean {
  const labels: readonly unknown[][] = [
    [false, 0, "false", "False", "0"],
    [true, 1, "true", "True", "1"],
  ];
  const index = labels.findIndex((names) => names.includes(value));
  if (index >= 0) return index === 1;
  throw new Error(
    `"label" must be true, for a desirable completion, or false, got ${excerpt(JSON.stringify(value), 40)}.`,
  );
}

/** Reads the prompt of a row; undefined if it has none. */
function readPrompt(fields: RowFields): { prompt?: TextOrMessages; usedColumns: readonly string[] } {
  const messagesKey = MESSAGE_KEYS.find((key) => fields[key] !== undefined);
  const promptKey = findText(fields, PROMPT_KEYS);
  if (messagesKey !== undefined && promptKey !== undefined)
    throw new Error(`it has both "${messagesKey}" and "${promptKey}". Remove or rename one of them.`);
  if (messagesKey !== undefined) return { prompt: readMessages(fields[messagesKey]), usedColumns: [messagesKey] };
  if (promptKey === undefined) return { usedColumns: [] };
  const isAlpaca = promptKey === "instruction";
  checkSingle(fields, PROMPT_KEYS, isAlpaca ? ["instruction", "input"] : [promptKey]);
  const prompt = readTextOrMessages(promptKey, fields[promptKey]);
  return {
    prompt: typeof prompt === "string" ? appendInput(fields, prompt) : prompt,
    usedColumns: [promptKey, ...(isAlpaca ? ["input"] : []), ...(typeof prompt === "string" ? ["context"] : [])],
  };
}

/**
 * Whether messages have the text prompt themselves: chosen and rejected of UltraFeedback are whole
 * conversations.
 */
function holdsPrompt(side: TextOrMessages, prompt: TextOrMessages): boolean {
  if (typeof side === "string" || typeof prompt !== "string") return false;
  return side.length > 1 && side.some(({ role, content }) => role === "user" && content === prompt);
}

/**
 * Splits off what both completions begin with, as TRL's `extract_prompt`. @throws Error for
 * completions that do not differ.
 */
function extractPrompt(chosen: TextOrMessages, rejected: TextOrMessages) {
  if (typeof chosen === "string" && typeof rejected === "string") {
    const length = Math.min(chosen.length, rejected.length);
    let index = 0;
    while (index < length && chosen[index] === rejected[index]) index++;
    if (index === length)
      throw new Error('there is no prompt, and one of "chosen" and "rejected" begins with the other.');
    if (chosen[index - 1] === " ") index--;
    return { prompt: chosen.slice(0, index), chosen: chosen.slice(index), rejected: rejected.slice(index) };
  }
  if (typeof chosen === "string" || typeof rejected === "string")
    throw new Error('"chosen" and "rejected" must both be texts or both be messages.');
  const same = (a: ChatMessage, b: ChatMessage) => JSON.stringify(a) === JSON.stringify(b);
  const length = Math.min(chosen.length, rejected.length);
  let index = 0;
  while (index < length - 1 && same(chosen[index], rejected[index])) index++;
  if (index === 0) throw new Error('there is no prompt: "chosen" and "rejected" do not begin with the same message.');
  return { prompt: chosen.slice(0, index), chosen: chosen.slice(index), rejected: rejected.slice(index) };
}

/**
 * Makes all parts text, or all of them messages. @throws Error for a completion without a message
 * of the assistant
 */
function toForm<Parts extends { readonly prompt: TextOrMessages }>(
  parts: Parts,
  fields: RowFields,
  prompts: "text" | "chat",
  inputs: object,
): Parts {
  const isPlain = readSystem(fields) === undefined && Object.keys(inputs).length === 0;
  if (prompts === "text" && isPlain && Object.values(parts).every((part) => typeof part === "string")) return parts;
  const entries = Object.entries(parts).map(([name, part]) => {
    const role = name === "prompt" ? "user" : "assistant";
    const messages = typeof part === "string" ? [{ role, content: part }] : part;
    if (role === "assistant" && !messages.some((message) => message.role === role))
      throw new Error(`"${name}" has no message of the assistant.`);
    return [name, name === "prompt" ? prependSystem(fields, messages) : messages];
  });
  return Object.fromEntries(entries) as Parts;
}
