import { stream } from "../../core/random/streams.js";
import type { Settings } from "../../core/settings.js";
import type { LanguageModel } from "../../generation/index.js";
import type { FolderLock } from "../../core/files/folder-lock.js";
import { encodeExample, type InvalidLine, type ReadExamplesOptions, toMessages } from "../../rl/data/index.js";
import { rendersTools } from "../../rl/tools/index.js";
import { REASONING_FIELDS, type ChatMessage, type ToolDefinition } from "../../models/text/index.js";
import type { exampleRunSettings } from "./example-run-settings.js";
import { hashData } from "./hash-files.js";

/** The settings that name the files of a run's examples, with the hashes of their contents. */
export interface ExampleFiles {
  readonly data: string;
  readonly evalData: string | undefined;
  readonly dataSha256?: string | undefined;
  readonly evalDataSha256?: string | undefined;
}

/**
 * Adds the hashes of the data. @throws FILE_NOT_FOUND, and RUN_INCOMPATIBLE for data that has
 * changed since the run started.
 */
export async function hashExamples<Config extends ExampleFiles>({
  config,
  saved,
  lock,
}: {
  readonly config: Config;
  readonly saved: Partial<ExampleFiles> | undefined;
  readonly lock: FolderLock;
}): Promise<Config> {
  const hash = async (path: string, option: string, name: "dataSha256" | "evalDataSha256") =>
    hashData(path, option, saved && { folder: lock.folder, sha256: saved[name] });
  const { data, evalData } = config;
  return {
    ...config,
    dataSha256: await hash(data, "--data", "dataSha256"),
    evalDataSha256: evalData === undefined ? undefined : await hash(evalData, "--eval-data", "evalDataSha256"),
  };
}

/** Examples read from a file. */
interface ReadFile<Example> {
  readonly examples: readonly Example[];
  readonly invalidLines: readonly InvalidLine[];
  readonly unusedColumns: readonly string[];
}

/** The examples of a run, for training and evaluation. */
interface LoadedExamples<Example> extends ReadFile<Example> {
  readonly evalExamples: readonly Example[];
}

type LoadConfig = Pick<Settings<typeof exampleRunSettings>, "evalData" | "evalSplit" | "onInvalidLine" | "prompts"> & {
  readonly data: string;
  readonly seed: number;
  readonly toolCalls: "template" | "text";
};

/** Returns whether prompts and completions that are texts are messages. */
export function promptFormat({ prompts }: Pick<LoadConfig, "prompts">, model: LanguageModel): "chat" | "text" {
  const hasTemplate = model.hasTokenizer && model.tokenizer.chatTemplates.size > 0;
  return prompts === "auto" ? (hasTemplate ? "chat" : "text") : prompts;
}

/** Reads the examples of a run, and holds some out for evaluation. */
export async function loadExamples<Example>(
  config: LoadConfig,
  model: LanguageModel,
  read: (path: string, options: ReadExamplesOptions) => Promise<ReadFile<Example>>,
): Promise<LoadedExamples<Example>> {
  const { data, evalData, evalSplit, onInvalidLine, seed } = config;
  const prompts = promptFormat(config, model);
  const readChecked = async (path: string): Promise<ReadFile<Example>> => {
    const file = await read(path, { onInvalidLine, prompts });
    const examples = file.examples as readonly object[];
    const lost = [...findLostTools(examples, config, model), ...findLostParts(examples, config, model)];
    return { ...file, unusedColumns: [...file.unusedColumns, ...lost] };
  };
  const loaded = await readChecked(data);
  if (evalData !== undefined) {
    const kept = await readChecked(evalData);
    return {
      examples: loaded.examples,
      evalExamples: kept.examples,
      invalidLines: [...loaded.invalidLines, ...kept.invalidLines],
      unusedColumns: Array.from(new Set([...loaded.unusedColumns, ...kept.unusedColumns])),
    };
  }
  const order = stream(seed, "sftSplit").permutation(loaded.examples.length);
  const count = Math.round(evalSplit * order.length);
  const select = (indices: readonly number[]) => indices.map((i) => loaded.examples[i]);
  return { ...loaded, examples: select(order.slice(count)), evalExamples: select(order.slice(0, count)) };
}

/** Returns the column of tools as unused where the chat template renders none. */
function findLostTools(
  examples: readonly { readonly tools?: readonly ToolDefinition[] }[],
  { toolCalls }: Pick<LoadConfig, "toolCalls">,
  model: LanguageModel,
): readonly string[] {
  const withTools = examples.find(({ tools }) => tools !== undefined);
  if (toolCalls === "text" || withTools === undefined || !model.hasTokenizer) return [];
  if (rendersTools(model.tokenizer.getChatTemplate(withTools))) return [];
  return ["tools (the chat template renders none; --tool-calls text writes them as text)"];
}

/** A conversation, or a prompt with its completion or its preferred one. */
interface Conversation {
  readonly messages?: readonly ChatMessage[];
  readonly prompt?: string | readonly ChatMessage[];
  readonly completion?: string | readonly ChatMessage[];
  readonly chosen?: string | readonly ChatMessage[];
  readonly tools?: readonly ToolDefinition[];
  readonly variables?: Readonly<Record<string, unknown>>;
}

/** What an answer has in addition to its text or its calls, which a chat template may leave out. */
const ANSWER_PARTS: readonly { readonly name: string; readonly read: (answer: ChatMessage) => unknown }[] = [
  {
    name: "the reasoning of answers",
    read: (answer) => REASONING_FIELDS.map((field) => answer[field]).find((value) => value !== undefined),
  },
  {
    name: "the content of answers with tool_calls",
    read: ({ tool_calls: calls, content }) => (Array.isArray(calls) && calls.length > 0 ? content : undefined),
  },
];

/**
 * Returns parts of answers that the chat template does not print, by the first last answer that has
 * one: templates leave the reasoning of earlier turns out on purpose.
 */
function findLostParts(
  examples: readonly Conversation[],
  { toolCalls }: Pick<LoadConfig, "toolCalls">,
  model: LanguageModel,
): readonly string[] {
  if (!model.hasTokenizer || model.tokenizer.chatTemplates.size === 0) return [];
  return ANSWER_PARTS.filter(({ read }) => {
    const readText = (conversation: Conversation) => {
      const answer = listMessages(conversation).at(-1);
      const text = answer?.role === "assistant" ? read(answer) : undefined;
      return typeof text === "string" ? text.trim() : "";
    };
    const example = examples.find((each) => readText(each) !== "");
    return example !== undefined && !isPrinted(example, readText(example), toolCalls, model);
  }).map(({ name }) => `${name} (the chat template does not print them)`);
}

/** Whether the text of a part is in an example as it is trained. */
function isPrinted(
  example: Conversation,
  text: string,
  toolCalls: LoadConfig["toolCalls"],
  { tokenizer }: LanguageModel,
): boolean {
  try {
    const encoded = encodeExample({ ...example, messages: listMessages(example) }, () => tokenizer, { toolCalls });
    return withoutSpaces(tokenizer.decode(Array.from(encoded.tokens))).includes(withoutSpaces(text));
  } catch {
    // The error is reported with the line of its example.
    return true;
  }
}

/** Templates trim and indent. */
const withoutSpaces = (text: string) => text.replace(/\s+/gu, "");

function listMessages({ messages, prompt = [], completion, chosen = [] }: Conversation): readonly ChatMessage[] {
  return messages ?? toMessages({ prompt, completion: completion ?? chosen }).messages;
}
