import { readJson } from "../../../models/files/index.js";
import type { JsonSchema } from "../../../generation/index.js";
import {
  numericOptions,
  contextOverflowModes,
  type GenerationOptions,
} from "../../../generation/generation-options.js";
import type { OptionTable, OptionValues } from "./option-table.js";

export const modelIdOption = {
  type: "text",
  short: "m",
  valueName: "path or id",
  description: "Model folder, GGUF file or Hugging Face id (owner/name, owner/name:file.gguf).",
} as const satisfies OptionTable[string];

/** How a model is opened and where it runs. */
export const modelOptions = {
  adapter: { type: "text", valueName: "path or id", description: "LoRA adapter to load." },
  revision: { type: "text", valueName: "name", description: "Branch, tag or commit of a Hugging Face id." },
  device: {
    type: "choice",
    choices: ["auto", "cpu", "cuda", "webgpu"],
    default: "auto",
    description: "Device to compute on.",
  },
  threads: {
    type: "number",
    integer: true,
    min: 1,
    default: "all cores",
    description: "CPU threads of one operation.",
  },
} as const satisfies OptionTable;

const { maxNewTokens, temperature, topK, topP, minP, repetitionPenalty, seed } = numericOptions;

/** The library's generation options. */
export const samplingOptions = {
  "max-new-tokens": { type: "number", ...maxNewTokens },
  temperature: { type: "number", short: "t", ...temperature },
  "top-k": { type: "number", ...topK },
  "top-p": { type: "number", ...topP },
  "min-p": { type: "number", ...minP },
  "repetition-penalty": { type: "number", ...repetitionPenalty },
  seed: { type: "number", ...seed },
  stop: { type: "text", repeated: true, description: "Text that ends the completion. May be repeated." },
  choice: { type: "text", repeated: true, description: "One of the allowed completions; repeat it for each." },
  regex: {
    type: "text",
    valueName: "expression",
    description: "Regular expression that the whole completion matches.",
  },
  "json-schema": {
    type: "text",
    valueName: "file",
    description: "File with a JSON schema; the completion is a JSON value that it allows.",
  },
  "context-overflow": {
    type: "choice",
    choices: contextOverflowModes,
    default: "error",
    description: "What to do with a prompt that is too long: fail, or drop its oldest part.",
  },
} as const satisfies OptionTable;

export const generateOptions = {
  model: { ...modelIdOption, required: true },
  ...modelOptions,
  prompt: { type: "text", short: "p", valueName: "text", description: "Prompt; - reads it from standard input." },
  system: { type: "text", valueName: "text", description: "System message." },
  raw: { type: "boolean", description: "Continue the prompt as plain text, without the chat template." },
  ...samplingOptions,
  json: { type: "boolean", description: "Print each completion as one line of JSON." },
  stats: { type: "boolean", description: "Print times and token counts on standard error." },
} as const satisfies OptionTable;

export type GenerateArgs = OptionValues<typeof generateOptions>;

/**
 * Converts command-line options to the library's generation options; options that were not given are left out.
 * @throws FILE_NOT_FOUND, FILE_CORRUPT and FILE_READ_FAILED for the file of a JSON schema.
 */
export async function toGenerationOptions(args: OptionValues<typeof samplingOptions>): Promise<GenerationOptions> {
  const schemaPath = args["json-schema"];
  const options = {
    maxNewTokens: args["max-new-tokens"],
    temperature: args.temperature,
    topK: args["top-k"],
    topP: args["top-p"],
    minP: args["min-p"],
    repetitionPenalty: args["repetition-penalty"],
    seed: args.seed,
    stop: args.stop,
    choices: args.choice,
    regex: args.regex,
    // Validated with the other options.
    jsonSchema: schemaPath === undefined ? undefined : ((await readJson(schemaPath)) as JsonSchema),
    contextOverflow: args["context-overflow"],
  };
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}
