import { existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import * as z from "zod";
import { invalidArgument, LlamaGymError } from "../../core/errors.js";
import { defineSettings, integer, number, text, type Settings } from "../../core/settings.js";
import { generationSettings } from "../../generation/index.js";
import { writeFileAtomic } from "../../core/files/write-file-atomic.js";
import type { ChatMessage } from "../../models/text/index.js";
import { addSystemHint, MESSAGE_KEYS, PROMPT_KEYS, readRows } from "../../rl/data/index.js";
import { openTeacherModel, type TeacherModelOptions } from "./open-teacher.js";
import { isTeacherUrl } from "./teacher-settings.js";

/** Settings of training on the completions of a teacher. */
export const completionTeacherSettings = defineSettings(
  {
    teacher: text({
      valueName: "path, id or URL",
      description:
        "Teacher whose completions of the data's prompts are trained, in place of those of the data: a run, an adapter, a model's folder, a GGUF file, a Hugging Face id, or the address of a server with OpenAI's API (its key comes from the environment variable OPENAI_API_KEY). It may have another tokenizer.",
    }),
    teacherModel: text({
      valueName: "name",
      description: "Model of the teacher's server. Default: its first.",
    }),
    teacherHint: text({
      valueName: "text",
      description: "Text that the teacher's system message has in addition, and the examples do not.",
    }),
    teacherTemperature: number({
      ...generationSettings.temperature,
      default: 1,
      description: "Sampling temperature of the teacher's completions.",
    }),
    teacherMaxTokens: integer({
      default: 256,
      min: 1,
      description: "Number of tokens of a completion of the teacher at most. Longer ones are left out.",
    }),
    teacherGenerations: integer({ default: 1, min: 1, description: "Number of completions of each prompt." }),
  },
  { group: "Teacher", scope: "algorithm" },
);

/** The settings that completions of a teacher depend on. */
interface CompletionConfig extends Settings<typeof completionTeacherSettings>, TeacherModelOptions {
  readonly seed: number;
  readonly data: string;
}

/** A text or messages; the teacher answers them. */
type Prompt = string | readonly ChatMessage[];

/** Completes a prompt; undefined for a completion that is too long. */
type Complete = (prompt: Prompt, seed: number) => Promise<string | undefined>;

/** File of the teacher's completions in a run folder. */
const COMPLETIONS_FILE = "completions.jsonl";
/** Completions that are requested at the same time. */
const MAX_CONCURRENT = 16;

const answer = z.object({
  choices: z.tuple([
    z.object({
      text: z.string().nullish(),
      message: z.object({ content: z.string().nullish() }).nullish(),
      finish_reason: z.string().nullish(),
    }),
  ]),
});

/** @throws INVALID_ARGUMENT for settings that need a teacher, or the server of one. */
export function checkCompletionTeacher(config: Settings<typeof completionTeacherSettings>): void {
  const { teacher, teacherModel } = config;
  if (teacher === "self")
    throw invalidArgument("`teacher` self is for llamagym train. Give the model itself, with a `teacherHint`.");
  if (teacher !== undefined) {
    if (teacherModel === undefined || isTeacherUrl(teacher)) return;
    throw invalidArgument("`teacherModel` names a model of a server. Set `teacher` to its address, or remove this.");
  }
  const names = Object.keys(completionTeacherSettings) as (keyof typeof completionTeacherSettings)[];
  const name = names.find((key) => config[key] !== completionTeacherSettings[key].default);
  if (name !== undefined)
    throw invalidArgument(`\`${name}\` has no effect without \`teacher\`. Add it, or remove this.`);
}

/** Where completions of a teacher are written. */
interface CompletionsTarget {
  readonly folder: string;
  readonly isResumed: boolean;
  /** Whether prompts that are texts are messages of a user. */
  readonly prompts: "chat" | "text";
  readonly onWarning?: ((message: string) => void) | undefined;
}

/**
 * Writes the teacher's completions of the data's prompts into a run folder, which has them if the
 * run is resumed, and returns the file.
 * @throws FILE_CORRUPT for a row without a prompt, INVALID_STATE if all completions are too long,
 * FILE_NOT_FOUND for a run to resume without its completions, and what opening the teacher throws
 */
export async function writeTeacherCompletions(
  config: CompletionConfig,
  { folder, isResumed, prompts: format, onWarning }: CompletionsTarget,
): Promise<string> {
  const path = join(folder, COMPLETIONS_FILE);
  if (isResumed) {
    if (existsSync(path)) return path;
    throw new LlamaGymError("FILE_NOT_FOUND", `${path} with the teacher's completions is missing. Start a new run.`);
  }
  const prompts = (await readPrompts(config.data)).flatMap((prompt) =>
    Array.from({ length: config.teacherGenerations }, () => prompt),
  );
  const teacher = await openCompleter(config, format);
  try {
    const completions = await completeAll(prompts, teacher.complete, config.seed);
    const rows = prompts.flatMap((prompt, i) => {
      const completion = completions[i];
      return completion === undefined ? [] : [toRow(prompt, completion)];
    });
    const reason = `empty, or longer than the ${config.teacherMaxTokens} tokens of \`teacherMaxTokens\``;
    if (rows.length === 0)
      throw new LlamaGymError("INVALID_STATE", `All ${prompts.length} completions of the teacher are ${reason}.`);
    if (rows.length < prompts.length)
      onWarning?.(
        `${prompts.length - rows.length} of ${prompts.length} completions of the teacher are left out: they are ${reason}.`,
      );
    await writeFileAtomic(path, rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
    return path;
  } finally {
    await teacher.close();
  }
}

/** Removes the completions of a run that could not be opened. */
export async function removeTeacherCompletions(folder: string): Promise<void> {
  await rm(join(folder, COMPLETIONS_FILE), { force: true });
}

async function readPrompts(data: string): Promise<readonly Prompt[]> {
  const { values } = await readRows(data, {}, (fields): Prompt => {
    const messagesKey = MESSAGE_KEYS.find((key) => fields[key] !== undefined);
    const given = fields[messagesKey ?? PROMPT_KEYS.find((key) => fields[key] !== undefined) ?? "prompt"];
    if (typeof given === "string" && given !== "") return given;
    const messages = Array.isArray(given) ? (given as readonly ChatMessage[]) : [];
    const prompt = messages.at(-1)?.role === "assistant" ? messages.slice(0, -1) : messages;
    if (prompt.length > 0 && prompt.every((message) => typeof message?.role === "string")) return prompt;
    throw new Error(
      `it must have a prompt for the teacher: messages with role and content (messages), or a text (${PROMPT_KEYS.join(", ")}).`,
    );
  });
  if (values.length > 0) return values;
  throw invalidArgument(`${data} has no rows. A teacher needs prompts to complete: add a row with a prompt.`);
}

function toRow(prompt: Prompt, completion: string): object {
  if (typeof prompt === "string") return { prompt, completion };
  return { messages: [...prompt, { role: "assistant", content: completion }] };
}

/** Completes prompts, several at the same time; the seed of one depends on its place only. */
async function completeAll(
  prompts: readonly Prompt[],
  complete: Complete,
  seed: number,
): Promise<readonly (string | undefined)[]> {
  const completions: (string | undefined)[] = [];
  let next = 0;
  const work = async (): Promise<void> => {
    while (next < prompts.length) {
      const i = next++;
      const completion = await complete(prompts[i], seed + i);
      completions[i] = completion?.trim() === "" ? undefined : completion;
    }
  };
  await Promise.all(Array.from({ length: Math.min(MAX_CONCURRENT, prompts.length) }, work));
  return completions;
}

async function openCompleter(
  config: CompletionConfig,
  format: "chat" | "text",
): Promise<{ readonly complete: Complete; readonly close: () => Promise<void> }> {
  const { teacherTemperature: temperature, teacherMaxTokens: maxTokens } = config;
  const teacher = config.teacher!;
  const toPrompt = (prompt: Prompt) => addHint(toMessages(prompt, format), config.teacherHint);
  if (isTeacherUrl(teacher)) {
    const { OpenAiServer } = await import("../../rl/algorithms/teacher-server.js");
    const server = new OpenAiServer({ baseURL: teacher, model: config.teacherModel });
    const complete: Complete = async (given, seed) => {
      const prompt = toPrompt(given);
      const [path, input] =
        typeof prompt === "string" ? ["completions", { prompt }] : ["chat/completions", { messages: prompt }];
      const parsed = answer.safeParse(await server.post(path, { ...input, temperature, max_tokens: maxTokens, seed }));
      if (!parsed.success)
        throw new LlamaGymError("SERVICE_FAILED", `${teacher} does not answer as OpenAI's /${path} does.`);
      const [{ text: completion, message, finish_reason: reason }] = parsed.data.choices;
      return reason === "length" ? undefined : (message?.content ?? completion ?? "");
    };
    return { complete, close: async () => server.close() };
  }
  const model = await openTeacherModel(teacher, config);
  const complete: Complete = async (given, seed) => {
    const completion = await model.generate(toPrompt(given), { temperature, maxNewTokens: maxTokens, seed });
    return completion.finishReason === "length" ? undefined : completion.text;
  };
  return { complete, close: async () => model.close() };
}

function toMessages(prompt: Prompt, format: "chat" | "text"): Prompt {
  return typeof prompt === "string" && format === "chat" ? [{ role: "user", content: prompt }] : prompt;
}

/** Adds a hint to the system message. @throws INVALID_ARGUMENT for prompts without messages */
function addHint(prompt: Prompt, hint: string | undefined): Prompt {
  if (hint === undefined) return prompt;
  if (typeof prompt === "string")
    throw invalidArgument("`teacherHint` needs messages, and the prompts are plain texts. Set `prompts` to chat.");
  return addSystemHint(prompt, hint);
}
