import { totalmem } from "node:os";
import { supportedModelTypes } from "../models/architectures/index.js";
import { registeredModels, runMemory } from "../models/registry.js";
import { command } from "./command.js";
import { formatBytes, print, table } from "./output.js";
import type { OptionTable } from "./options.js";

const options = {
  json: { type: "flag", description: "print one JSON object" },
} as const satisfies OptionTable;

export const modelsCommand = command(
  "models",
  "List the models that can be used, and which fit this machine",
  options,
  async ({ json }) => {
    const memory = totalmem();
    const models = registeredModels.map((model) => ({
      ...model,
      memory: runMemory(model),
      fits: runMemory(model) <= memory,
    }));
    if (json) print(JSON.stringify({ architectures: supportedModelTypes, machineMemory: memory, models }));
    else printTable(models, memory);
    return 0;
  },
);

function printTable(
  models: readonly ((typeof registeredModels)[number] & { readonly memory: number; readonly fits: boolean })[],
  memory: number,
): void {
  print(`Architectures: ${supportedModelTypes.join(", ")}`);
  print("Any model of these opens: a folder with safetensors, a GGUF file, or a Hugging Face id. Small ones:\n");
  const rows = models.map(({ id, modelType, parameters, context, memory: needed, fits, gated, kind }) => [
    id,
    modelType,
    formatCount(parameters),
    String(context),
    formatBytes(needed),
    fits ? "yes" : "no",
    [kind, ...(gated ? ["gated"] : [])].join(", "),
  ]);
  print(table([["MODEL", "ARCHITECTURE", "SIZE", "CONTEXT", "MEMORY", "FITS", ""], ...rows], [2, 3, 4]));
  print(
    `\nMEMORY is what generating takes in float32; this machine has ${formatBytes(memory)}. gated: accept the terms on the`,
  );
  print("model's page and set HF_TOKEN.");
}

/** "135 M", "1.7 B" parameters. */
function formatCount(parameters: number): string {
  return parameters < 1e9 ? `${Math.round(parameters / 1e6)} M` : `${(parameters / 1e9).toFixed(1)} B`;
}
