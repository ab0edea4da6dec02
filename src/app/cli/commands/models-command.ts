import { supportedModelTypes } from "../../../models/architectures/index.js";
import { modelFamily, registeredModels, type RegisteredModel } from "../../../models/registry/index.js";
import { availableMemory } from "../../runs/estimate-run-memory.js";
import { buildCommand } from "../options/build-command.js";
import { formatBytes, print, formatTable } from "../display/output.js";
import type { OptionTable } from "../options/parse-args.js";

const options = {
  json: { type: "flag", description: "print one JSON object" },
} as const satisfies OptionTable;

const BITS = [32, 8, 4] as const;
const USES = ["play", "train"] as const;

export const modelsCommand = buildCommand(
  "models",
  "List the models that can be used, and which fit this machine",
  options,
  async ({ json }) => {
    const memory = availableMemory();
    const models = registeredModels();
    if (json)
      print(JSON.stringify({ architectures: supportedModelTypes, machineMemory: memory, models: models.map(toJson) }));
    else printTable(models, memory);
    return 0;
  },
);

/** Memory in bytes by use and bits. */
function toJson(model: RegisteredModel): object {
  const memory = USES.map((use) => [
    use,
    Object.fromEntries(BITS.map((bits) => [bits, Math.round(model.estimateMemory({ use, bits }))])),
  ]);
  return { ...model, family: modelFamily(model.id), memory: Object.fromEntries(memory) as object };
}

function printTable(models: readonly RegisteredModel[], memory: number): void {
  print(`Architectures: ${supportedModelTypes.join(", ")}`);
  print("Any model of these opens: a folder with safetensors, a GGUF file, or a Hugging Face id. Small ones:\n");
  const rows = models.map((model) => [
    model.id,
    formatCount(model.parameters),
    String(model.contextLength),
    ...USES.map((use) => BITS.map((bits) => formatMemory(model.estimateMemory({ use, bits }))).join(" ")),
    describeFit(model, memory),
    model.license,
    [model.kind, ...(model.gated ? ["gated"] : [])].join(", "),
  ]);
  const header = ["MODEL", "SIZE", "CONTEXT", "PLAY 32 8 4", "TRAIN 32 8 4", "FITS", "LICENCE", ""];
  print(formatTable([header, ...rows], [1, 2, 3, 4]));
  print(
    `\nPLAY and TRAIN: memory in GB to generate and to train an adapter, with layers of 32, 8 and 4 bits (--quantise). This machine\n` +
      `has ${formatBytes(memory)} free. FITS: what it can do, and from how many bits on. gated: accept the terms on the model's page and\n` +
      "set HF_TOKEN. Other ids of these families work too; docs/models.md has more.",
  );
  for (const { id, note } of models) if (note !== undefined) print(`${id}: ${note}.`);
}

/** "train", "train 8", "play 4" or "no": the most that fits, in the most bits. */
function describeFit(model: RegisteredModel, memory: number): string {
  for (const use of ["train", "play"] as const) {
    const bits = BITS.find((bits) => model.estimateMemory({ use, bits }) <= memory);
    if (bits !== undefined) return bits === 32 ? use : `${use} ${bits}`;
  }
  return "no";
}

function formatMemory(bytes: number): string {
  return (bytes / 1e9).toFixed(1).padStart(5);
}

/** "135 M", "1.7 B" parameters. */
function formatCount(parameters: number): string {
  return parameters < 1e9 ? `${Math.round(parameters / 1e6)} M` : `${(parameters / 1e9).toFixed(1)} B`;
}
