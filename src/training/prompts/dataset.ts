import { readJsonLines } from "../../algorithms/sft/jsonl.js";
import { invalid } from "../../algorithms/shared/settings.js";
import { LlamaGymError } from "../../errors.js";
import type { LanguageModel } from "../../generation/language-model.js";
import { PromptWriter } from "../../rollout/prompt-writer.js";
import { templateMessages, type ChatMessage } from "../../text/messages.js";

/** A text that is continued, or messages that are answered. */
export type Prompt = string | readonly ChatMessage[];

/** A row of a data set: a prompt, and whatever reward functions want to know of it. */
export interface PromptRow {
  readonly prompt: Prompt;
  readonly [column: string]: unknown;
}

/** A row, checked, and how messages name it. */
interface NamedRow {
  readonly row: PromptRow;
  readonly name: string;
}

/** A row whose prompt is tokens. */
export interface EncodedRow {
  readonly row: PromptRow;
  readonly tokens: readonly number[];
}

/** Names under which reward functions get other things. */
const RESERVED = ["prompts", "completions", "completionIds"];

/** Too many are not all named in one message. */
const NAMED_AT_MOST = 3;

/**
 * The rows of a data set, given or in a JSONL file, with their prompts as tokens.
 * Throws FILE_NOT_FOUND, FILE_CORRUPT (a file) or INVALID_ARGUMENT (rows) for a row without a prompt, and CONTEXT_OVERFLOW for
 * prompts that leave no room for `newTokens`; messages say which row or line.
 */
export async function openDataset(
  dataset: string | readonly PromptRow[],
  model: LanguageModel,
  newTokens: number,
): Promise<readonly EncodedRow[]> {
  const rows = typeof dataset === "string" ? await readRows(dataset) : givenRows(dataset);
  if (rows.length === 0) throw invalid("trainDataset has no rows; each training step needs a prompt.");
  const writer = new PromptWriter(model.tokenizer);
  const encoded = rows.map(({ row, name }) => ({ row, name, tokens: encode(writer, row.prompt, name) }));
  const { maxPositions } = model.causalLM.config;
  const tooLong = encoded.filter(({ tokens }) => tokens.length + newTokens > maxPositions);
  if (tooLong.length > 0) {
    const named = tooLong.slice(0, NAMED_AT_MOST).map(({ name, tokens }) => `${name} (${tokens.length} tokens)`);
    const others = tooLong.length > NAMED_AT_MOST ? ` and ${tooLong.length - NAMED_AT_MOST} more` : "";
    throw new LlamaGymError(
      "CONTEXT_OVERFLOW",
      `With maxCompletionLength ${newTokens} these prompts need more than the model's context of ${maxPositions} tokens: ` +
        `${named.join(", ")}${others}. Leave them out, or ask for shorter completions.`,
    );
  }
  return encoded;
}

async function readRows(path: string): Promise<readonly NamedRow[]> {
  const { values } = await readJsonLines(path, {}, (fields, line) => ({
    row: checkRow(fields),
    name: `${path}, line ${line}`,
  }));
  return values;
}

function givenRows(rows: readonly PromptRow[]): NamedRow[] {
  return rows.map((row, i) => {
    const name = `row ${i} of trainDataset`;
    try {
      return { row: checkRow(row), name };
    } catch (error) {
      throw invalid(`${name}: ${(error as Error).message}`);
    }
  });
}

/** Throws an error that says what is wrong, for one that says where. */
function checkRow(fields: Readonly<Record<string, unknown>>): PromptRow {
  if (typeof fields !== "object" || fields === null)
    throw new Error(`it must be an object such as { prompt: "2 + 2 =" }, not ${JSON.stringify(fields)}.`);
  const { prompt } = fields;
  const reserved = RESERVED.find((name) => name in fields);
  if (reserved !== undefined)
    throw new Error(`a column cannot be called "${reserved}": reward functions get something else under that name.`);
  if (typeof prompt === "string" && prompt !== "") return { ...fields, prompt };
  if (Array.isArray(prompt) && prompt.length > 0) {
    templateMessages(prompt as ChatMessage[]);
    return { ...fields, prompt: prompt as ChatMessage[] };
  }
  const wanted = '"prompt" must be a text or a list of messages that is not empty';
  if ("prompt" in fields) throw new Error(`its prompt is ${JSON.stringify(prompt)}; ${wanted}.`);
  const keys = Object.keys(fields).join(", ");
  throw new Error(`it has no prompt: ${wanted}; its keys are ${keys === "" ? "none" : keys}.`);
}

function encode(writer: PromptWriter, prompt: Prompt, name: string): readonly number[] {
  if (typeof prompt === "string") return writer.tokenizer.encode(prompt);
  try {
    const conversation = writer.conversation();
    conversation.add(...prompt);
    return conversation.promptIds();
  } catch (error) {
    if (!(error instanceof LlamaGymError)) throw error;
    throw new LlamaGymError(error.code, `${name}: ${error.message}`, { cause: error });
  }
}
