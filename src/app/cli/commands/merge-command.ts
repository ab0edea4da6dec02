import { choice, defineSettings, text } from "../../../core/settings.js";
import { exportToFolder } from "../export-model.js";
import { defineCommand } from "../options/define-command.js";
import { printSaved } from "../train-run.js";

export const mergeCommand = defineCommand({
  name: "merge",
  description:
    "Merges a LoRA adapter into its base model and saves a model folder, which Transformers also opens: the short form of export --format merged.",
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
    const { output } = options;
    await exportToFolder(adapter, { ...options, format: "merged", requiresAdapter: true }, reporter);
    printSaved(output, reporter);
    return 0;
  },
});
