import {
  boolean,
  defineSettings,
  integer,
  list,
  selectSettings,
  text,
  type GivenSettings,
} from "../../../core/settings.js";
import { generationSettings, type GenerationOptions, type JsonSchema } from "../../../generation/index.js";
import { readJson } from "../../../core/files/json-file.js";
import { modelSettings } from "../../../models/index.js";

/** How a model is opened and where it runs. */
export const modelOptions = defineSettings(
  {
    adapter: { ...modelSettings.adapter, description: "LoRA adapter to load." },
    revision: text({ valueName: "name", description: "Branch, tag or commit of a Hugging Face id." }),
    device: modelSettings.device,
    threads: integer({
      ...modelSettings.threads,
      defaultText: "all cores",
      description: "CPU threads of one operation.",
    }),
    quantize: modelSettings.quantize,
    splitSpecialTokens: modelSettings.splitSpecialTokens,
  },
  { group: "Model" },
);

const { stop, seed, contextOverflow, ...samplingSettings } = generationSettings;

const promptOptions = defineSettings(
  {
    prompt: text({ short: "p", common: true, description: "Prompt; - reads it from standard input." }),
    system: text({ common: true, description: "System message." }),
    raw: boolean({ description: "Continue the prompt as plain text, without the chat template." }),
    contextOverflow,
  },
  { group: "Prompt" },
);

const constraintOptions = defineSettings(
  {
    choice: list({ description: "One of the allowed completions; repeat it for each." }),
    regex: text({ valueName: "expression", description: "Regular expression that the whole completion matches." }),
    jsonSchema: text({
      valueName: "file",
      description: "File with a JSON schema; the completion is a JSON value that it allows.",
    }),
  },
  { group: "Constraints" },
);

export const generateOptions = {
  model: text({
    group: "Model",
    short: "m",
    common: true,
    valueName: "path or id",
    required: true,
    description: "Model folder, GGUF file or Hugging Face id (owner/name, owner/name:file.gguf).",
  }),
  ...modelOptions,
  ...promptOptions,
  ...defineSettings({ ...samplingSettings, seed, stop }, { group: "Sampling" }),
  ...constraintOptions,
  ...defineSettings(
    {
      json: boolean({ common: true, description: "Print each completion as one line of JSON." }),
      stats: boolean({ description: "Print times and token counts on standard error." }),
    },
    { group: "Output" },
  ),
};

export type GenerateArgs = GivenSettings<typeof generateOptions>;

/**
 * Converts command-line options to the library's generation options; options that were not given
 * are left out.
 * @throws FILE_NOT_FOUND, FILE_CORRUPT and FILE_READ_FAILED for the file of a JSON schema.
 */
export async function toGenerationOptions(args: GenerateArgs): Promise<GenerationOptions> {
  const { choice: choices, jsonSchema, regex } = args;
  const options = {
    ...selectSettings(generationSettings, args),
    choices,
    regex,
    // Validated with the other options.
    jsonSchema: jsonSchema === undefined ? undefined : ((await readJson(jsonSchema)) as JsonSchema),
  };
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}
