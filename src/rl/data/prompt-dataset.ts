import { createHash } from "#platform";
import { rejectMedia } from "./read-examples.js";
import { readTextOrMessages } from "./read-messages.js";
import { readRows } from "./read-rows.js";
import { LlamaGymError, invalidArgument } from "../../core/errors.js";
import { describeValue } from "../../core/format.js";
import type { LanguageModel } from "../../generation/index.js";
import { PromptRenderer } from "../rollout/prompt-renderer.js";
import type { ToolChat } from "../tools/index.js";
import type { ChatMessage } from "../../models/text/index.js";

/** A text to continue, or messages to answer. */
export type DatasetPrompt = string | readonly ChatMessage[];

/** A dataset row: a prompt and columns that are passed to reward functions. */
export interface PromptRow {
  readonly prompt: DatasetPrompt;
  readonly [column: string]: unknown;
}

/** A validated row and its name in error messages. */
interface NamedRow {
  readonly row: PromptRow;
  readonly name: string;
}

/** A row with its tokenized prompt. */
export interface EncodedRow {
  readonly row: PromptRow;
  readonly tokens: readonly number[];
  /** The prompt with the hints of a teacher; undefined for a row without. */
  readonly teacherTokens?: readonly number[];
}

/** Names of other arguments of reward functions. */
const RESERVED_COLUMNS = ["prompts", "completions", "completionIds"];

/** Rows that one error message lists at most. */
const MAX_LISTED = 3;

/** Options of `loadPromptDataset`. */
export interface PromptDatasetOptions {
  /** Further variables of the chat template, for prompts of messages. */
  readonly chatTemplateKwargs?: Readonly<Record<string, unknown>>;
  /** Renders prompts with the descriptions of tools; prompts must then be messages. */
  readonly toolChat?: Pick<ToolChat, "encodePrompt">;
  /** Name of the dataset in messages. Default "trainDataset". */
  readonly name?: string;
  /**
   * Tokenizes the prompts of a teacher too: with its hint in the system message, and that of a
   * row's column `hint` behind the last message of the user.
   */
  readonly teacher?: { readonly hint?: string | undefined } | undefined;
}

/**
 * Loads a dataset of rows or from a JSONL, JSON or CSV file, and tokenizes its prompts.
 * @throws FILE_NOT_FOUND, FILE_CORRUPT (file) or INVALID_ARGUMENT (rows) for a row without a
 * prompt, and CONTEXT_OVERFLOW for prompts that leave no room for `maxCompletionLength` tokens.
 */
export async function loadPromptDataset(
  dataset: string | readonly PromptRow[],
  model: LanguageModel,
  maxCompletionLength: number,
  { chatTemplateKwargs, toolChat, name: datasetName = "trainDataset", teacher }: PromptDatasetOptions = {},
): Promise<readonly EncodedRow[]> {
  const rows = typeof dataset === "string" ? await readRowsFromFile(dataset) : readInlineRows(dataset, datasetName);
  const name = typeof dataset === "string" ? dataset : datasetName;
  if (rows.length === 0)
    throw invalidArgument(`${name} has no rows. Each update needs prompts: add a row with a prompt.`);
  const renderer = new PromptRenderer(model.tokenizer, "", chatTemplateKwargs);
  const encodeMessages = (prompt: readonly ChatMessage[]) => {
    if (toolChat === undefined) return renderer.encodeMessages(prompt);
    if (prompt.at(-1)?.role !== "assistant") return toolChat.encodePrompt(prompt);
    throw invalidArgument("with `tools`, a prompt cannot end with a message of the assistant. Remove that message.");
  };
  const encoded = rows.map(({ row, name }) => {
    const { prompt } = row;
    const hints = teacher && withRowName(name, () => readHints(row, teacher.hint));
    if (typeof prompt !== "string")
      return withRowName(name, () => ({
        row,
        name,
        tokens: encodeMessages(prompt),
        ...(hints === undefined ? {} : { teacherTokens: encodeMessages(addHints(prompt, hints)) }),
      }));
    if (hints !== undefined)
      throw invalidArgument(
        `${name}: a teacher's hint needs a prompt of messages, such as [{ role: "user", content: ${JSON.stringify(prompt.slice(0, 40))} }]; this prompt is a text.`,
      );
    if (toolChat !== undefined)
      throw invalidArgument(
        `${name}: \`tools\` need prompts of messages, by which the chat template describes them, such as [{ role: "user", content: ${JSON.stringify(prompt.slice(0, 40))} }]; this prompt is a text.`,
      );
    return { row, name, tokens: renderer.tokenizer.encode(prompt) };
  });
  const { maxPositions } = model.policy.config;
  const tooLong = encoded.filter(({ tokens }) => tokens.length + maxCompletionLength > maxPositions);
  if (tooLong.length > 0) {
    const listed = tooLong.slice(0, MAX_LISTED).map(({ name, tokens }) => `${name} (${tokens.length} tokens)`);
    const remainder = tooLong.length > MAX_LISTED ? ` and ${tooLong.length - MAX_LISTED} more` : "";
    throw new LlamaGymError(
      "CONTEXT_OVERFLOW",
      `With \`maxCompletionLength\` ${maxCompletionLength}, prompts exceed the model's context of ${maxPositions} tokens: ` +
        `${listed.join(", ")}${remainder}. Remove them, or lower \`maxCompletionLength\`.`,
    );
  }
  return encoded;
}

/** Hints of a teacher: one of all prompts and one of a row. */
interface Hints {
  readonly system: string;
  readonly user: string;
}

/** Returns the hints of a row, if it has any. @throws INVALID_ARGUMENT */
function readHints({ hint }: PromptRow, system = ""): Hints | undefined {
  if (hint !== undefined && hint !== null && typeof hint !== "string")
    throw invalidArgument(`"hint", which only the teacher sees, must be a text, got ${describeValue(hint)}.`);
  const user = hint ?? "";
  return system === "" && user === "" ? undefined : { system, user };
}

/** Adds hints to a prompt. @throws INVALID_ARGUMENT without a message of the user */
function addHints(prompt: readonly ChatMessage[], { system, user }: Hints): readonly ChatMessage[] {
  const messages = system === "" ? prompt : addSystemHint(prompt, system);
  if (user === "") return messages;
  const last = messages.findLastIndex(({ role }) => role === "user");
  if (last === -1) throw invalidArgument('the column "hint" needs a message of the user, behind which it stands.');
  return messages.map((message, i) => (i === last ? appendText(message, user) : message));
}

/** Adds a hint to the system message of a prompt, or as one. */
export function addSystemHint(prompt: readonly ChatMessage[], hint: string): readonly ChatMessage[] {
  const [first, ...others] = prompt;
  if (first.role !== "system") return [{ role: "system", content: hint }, ...prompt];
  return [appendText(first, hint), ...others];
}

function appendText(message: ChatMessage, text: string): ChatMessage {
  const content = message.content ?? "";
  if (typeof content === "string") return { ...message, content: `${content}\n\n${text}` };
  return { ...message, content: [...content, { type: "text", text: `\n\n${text}` }] };
}

/** Returns a hash of rows, by which a resumed run recognizes them. */
export function hashRows(rows: readonly EncodedRow[]): string {
  const hash = createHash("sha256");
  for (const { row, tokens } of rows) hash.update(`${tokens.join()} ${stringifyColumns(row)}\n`);
  return hash.hex();
}

/** Formats the columns of a row; those of a program may not be JSON. */
function stringifyColumns(row: PromptRow): string {
  try {
    return JSON.stringify(row);
  } catch {
    return "";
  }
}

async function readRowsFromFile(path: string): Promise<readonly NamedRow[]> {
  const { values } = await readRows(path, {}, (fields, name) => ({ row: checkRow(fields), name }));
  return values;
}

function readInlineRows(rows: readonly PromptRow[], datasetName: string): NamedRow[] {
  return rows.map((row, i) => {
    const name = `row ${i} of ${datasetName}`;
    try {
      return { row: checkRow(row), name };
    } catch (error) {
      throw invalidArgument(`${name}: ${(error as Error).message}`);
    }
  });
}

/** Validates a row. @throws Error with the reason, to which the caller adds the row. */
function checkRow(fields: Readonly<Record<string, unknown>>): PromptRow {
  if (typeof fields !== "object" || fields === null)
    throw new Error(`the row must be an object such as { prompt: "2 + 2 =" }, got ${JSON.stringify(fields)}.`);
  const { prompt } = fields;
  const reserved = RESERVED_COLUMNS.find((name) => name in fields);
  if (reserved !== undefined)
    throw new Error(`the column name "${reserved}" is reserved for an argument of reward functions.`);
  rejectMedia(fields);
  const isList = Array.isArray(prompt) && prompt.length > 0;
  if (isList || (typeof prompt === "string" && prompt !== ""))
    return { ...fields, prompt: readTextOrMessages("prompt", prompt) };
  const requirement = '"prompt" must be a non-empty text or array of messages';
  if ("prompt" in fields) throw new Error(`${requirement}, got ${JSON.stringify(prompt)}.`);
  const keys = Object.keys(fields).join(", ");
  throw new Error(`the row has no prompt: ${requirement}; its keys are ${keys === "" ? "none" : keys}.`);
}

/** Calls a function; names the row in the errors that it throws. */
function withRowName<Result>(name: string, call: () => Result): Result {
  try {
    return call();
  } catch (error) {
    if (!(error instanceof LlamaGymError)) throw error;
    throw new LlamaGymError(error.code, `${name}: ${error.message}`, { cause: error });
  }
}
