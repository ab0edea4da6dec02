import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { choice, defineSettings, text } from "../../../core/settings.js";
import { LlamaGymError } from "../../../core/errors.js";
import { AutoModelForCausalLM } from "../../../generation/auto-model.js";
import { checkWritable, readRunConfig } from "../../runs/run-folder.js";
import { formatCommandLine, quoteArg } from "../command-line.js";
import { reportDownloads } from "../display/report-downloads.js";
import { defineCommand } from "../options/define-command.js";
import type { Reporter } from "../reporter.js";
import { withModelAdvice } from "../with-model-advice.js";

/** Folders in which runs of train and sft save their adapters. */
const RESULT_FOLDERS = ["adapter", "model"];

interface MergeOptions {
  readonly output: string;
  readonly model?: string;
  readonly dtype?: "F32" | "F16" | "BF16";
}

export const mergeCommand = defineCommand({
  name: "merge",
  description: "Merges a LoRA adapter into its base model and saves a model folder, which Transformers opens, too.",
  examples: [
    { description: "Merge the result of a run", args: "merge runs/sft --output models/sft" },
    { description: "Try the merged model", args: "generate --model models/sft" },
  ],
  positionals: [
    { name: "ADAPTER", description: "Adapter folder, its Hugging Face id, or a run folder.", required: true },
  ],
  options: defineSettings({
    output: text({ short: "o", valueName: "folder", required: true, description: "Folder of the merged model." }),
    model: text({
      short: "m",
      valueName: "path or id",
      defaultText: "the one that the adapter names",
      description: "Base model.",
    }),
    dtype: choice({ choices: ["F32", "F16", "BF16"], default: "F32", description: "Type of the saved weights." }),
  }),
  run: async (options, reporter, [adapter]) => {
    await checkNewFolder(options.output);
    await merge(await findAdapter(adapter), options, reporter);
    return 0;
  },
});

async function merge(
  adapter: string,
  { output, model, dtype = "F32" }: MergeOptions,
  reporter: Reporter,
): Promise<void> {
  const downloads = reportDownloads(reporter);
  const options = { device: "cpu", onProgress: downloads.update } as const;
  const opened = await withModelAdvice(model ?? adapter, () =>
    model === undefined
      ? AutoModelForCausalLM.fromPretrained(adapter, options)
      : AutoModelForCausalLM.fromPretrained(model, { ...options, adapter }),
  ).finally(() => downloads.end());
  try {
    if (opened.causalLM.adapter === undefined)
      throw new LlamaGymError(
        "INVALID_ARGUMENT",
        `${adapter} is a whole model, so there is no adapter to merge. Open it as it is.`,
      );
    // It shares the files of the opened model, which are closed below.
    await (await opened.mergeAndUnload()).savePretrained(output, { dtype });
  } finally {
    await opened.close();
  }
  reporter.print(`Saved ${output}.\nTry it: ${formatCommandLine(`generate --model ${quoteArg(output)}`)}`);
}

/** Returns the folder of a run's adapter, or the given name of an adapter. */
async function findAdapter(name: string): Promise<string> {
  if ((await readRunConfig(name).catch(() => undefined)) === undefined) return name;
  const folders = RESULT_FOLDERS.map((folder) => join(name, folder));
  for (const folder of folders) if (await stat(folder).catch(() => undefined)) return folder;
  throw new LlamaGymError(
    "FILE_NOT_FOUND",
    `The run in ${name} has no ${RESULT_FOLDERS.join("/ or ")}/ yet. Finish it first, or give the adapter of a checkpoint.`,
  );
}

/** A folder with the files of another model would open as that one. */
async function checkNewFolder(folder: string): Promise<void> {
  await checkWritable(folder);
  const files = await readdir(folder).catch(() => []);
  if (files.length > 0)
    throw new LlamaGymError("INVALID_STATE", `${folder} is not empty. Choose another --output, or empty it first.`);
}
