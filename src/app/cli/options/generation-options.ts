import { readJson } from "../../../models/files/index.js";
import type { JsonSchema } from "../../../generation/index.js";
import {
  numericOptions,
  contextOverflowModes,
  type GenerationOptions,
} from "../../../generation/generation-options.js";
import type { OptionTable, OptionValues } from "./parse-args.js";

/** Which model a command opens. */
export const modelIdOption = {
  type: "text",
  alias: "m",
  hint: "path or id",
  description: "a model folder, a GGUF file, or a Hugging Face id (owner/name, owner/name:file.gguf)",
} as const satisfies OptionTable[string];

/** With what it is opened, and where it runs. */
export const modelOptions = {
  adapter: { type: "text", hint: "path or id", description: "a LoRA adapter to put on the model" },
  revision: { type: "text", hint: "name", description: "branch, tag or commit of a Hugging Face id" },
  device: {
    type: "choice",
    choices: ["auto", "cpu", "cuda", "webgpu"],
    description: "where to compute; auto by default",
  },
  threads: { type: "number", integer: true, min: 1, description: "threads of one operation; all cores by default" },
} as const satisfies OptionTable;

const { maxNewTokens, temperature, topK, topP, minP, repetitionPenalty, seed } = numericOptions;

/** How replies are generated: the library's own options. */
export const samplingOptions = {
  "max-new-tokens": { type: "number", ...maxNewTokens },
  temperature: { type: "number", alias: "t", ...temperature },
  "top-k": { type: "number", ...topK },
  "top-p": { type: "number", ...topP },
  "min-p": { type: "number", ...minP },
  "repetition-penalty": { type: "number", ...repetitionPenalty },
  seed: { type: "number", ...seed },
  stop: { type: "text", repeated: true, description: "a text that ends the reply; may be given several times" },
  choice: { type: "text", repeated: true, description: "a text that the reply may be; give it once for each" },
  regex: { type: "text", hint: "expression", description: "a regular expression that the whole reply matches" },
  "json-schema": {
    type: "text",
    hint: "file",
    description: "a file with a JSON schema: the reply is a JSON value that it allows",
  },
  overflow: {
    type: "choice",
    choices: contextOverflowModes,
    description: "what to do with a prompt that is too long: refuse it (the default), or leave out its oldest part",
  },
} as const satisfies OptionTable;

/** What the command generate takes. */
export const generateOptions = {
  model: { ...modelIdOption, required: true },
  ...modelOptions,
  prompt: { type: "text", alias: "p", hint: "text", description: "what to reply to; - reads it from standard input" },
  system: { type: "text", hint: "text", description: "a system message before the conversation" },
  raw: { type: "flag", description: "go on with the prompt as a text, without the model's chat template" },
  ...samplingOptions,
  json: { type: "flag", description: "print each reply as one line of JSON" },
  stats: { type: "flag", description: "print times and token counts on standard error" },
} as const satisfies OptionTable;

export type GenerateArgs = OptionValues<typeof generateOptions>;

/**
 * The library's generation options from the command line's; what was not given stays out. Throws FILE_NOT_FOUND, FILE_CORRUPT
 * and FILE_READ_FAILED for the file of a JSON schema.
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
    // What else may stand in the file is refused with the other options.
    jsonSchema: schemaPath === undefined ? undefined : ((await readJson(schemaPath)) as JsonSchema),
    overflow: args.overflow,
  };
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}
