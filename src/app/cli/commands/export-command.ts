import { boolean, choice, defineSettings, text } from "../../../core/settings.js";
import { formatCommandLine, quoteArg } from "../command-line.js";
import { exportToFolder } from "../export-model.js";
import { defineCommand } from "../options/define-command.js";

export const exportCommand = defineCommand({
  name: "export",
  description: "Exports a trained model for PEFT, Transformers, transformers.js, or llama.cpp and Ollama.",
  examples: [
    {
      description: "A file for llama.cpp and Ollama",
      args: "export runs/first --format gguf --dtype Q8 --output models/first-gguf",
    },
    {
      description: "A folder for transformers.js, in Node and browsers",
      args: "export runs/first --format onnx --dtype Q4 --output models/first-onnx",
    },
    {
      description: "A folder for Transformers, from a GGUF file",
      args: "export model.gguf --format merged --dtype BF16 --output models/plain",
    },
  ],
  positionals: [
    {
      name: "SOURCE",
      description: "Run folder, adapter folder, model folder, GGUF file, Hugging Face id, or embedded.",
      required: true,
    },
  ],
  options: defineSettings({
    format: choice({
      short: "f",
      choices: ["peft", "merged", "onnx", "gguf"],
      default: undefined,
      required: true,
      description:
        "peft: the adapter alone; merged: safetensors; onnx: transformers.js's layout; gguf: one file with an Ollama Modelfile.",
    }),
    output: text({ short: "o", valueName: "folder", required: true, description: "Folder of the exported model." }),
    dtype: choice({
      choices: ["F32", "F16", "BF16", "Q8", "Q4"],
      default: undefined,
      defaultText: "F16 for gguf, F32 for the others",
      description: "Type of the weights; BF16 only for merged, Q8 and Q4 only for onnx and gguf; peft has F32.",
    }),
    model: text({
      short: "m",
      valueName: "path or id",
      defaultText: "the one that the adapter names",
      description: "Base model of an adapter.",
    }),
    overwrite: boolean({ default: false, description: "Replace an output folder that is not empty." }),
  }),
  run: async (options, reporter, [source]) => {
    const { format, output } = options as { format: NonNullable<typeof options.format>; output: string };
    await exportToFolder(source, { ...options, format, output }, reporter);
    reporter.print(`Saved ${output}.`);
    if (format !== "onnx") {
      const model = format === "gguf" ? `${output}/model.gguf` : output;
      reporter.print(`Try it: ${formatCommandLine(`generate --model ${quoteArg(model)}`)}`);
    }
    return 0;
  },
});
