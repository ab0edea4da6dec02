import { boolean, choice } from "../../../core/settings.js";
import { supportedModelTypes } from "../../../models/architectures/index.js";
import { modelFamily, registeredModels, type RegisteredModel } from "../../../models/registry/index.js";
import { availableMemory } from "../../runs/estimate-run-memory.js";
import { formatTable } from "../display/format-table.js";
import { formatBytes } from "../../../core/format.js";
import { defineCommand } from "../options/define-command.js";
import type { Reporter } from "../reporter.js";

const BITS = [32, 8, 4] as const;
type EstimatedDevice = "cpu" | "webgpu";
const USES = ["inference", "train"] as const;

export const modelsCommand = defineCommand({
  name: "models",
  description: "Lists supported architectures, small models, and which of them fit the memory of this machine.",
  options: {
    device: choice({
      choices: ["cpu", "webgpu"],
      description: "Device whose memory is estimated: cpu is the process's, webgpu the GPU's.",
      default: "cpu",
    }),
    json: boolean({ description: "Print one JSON object." }),
  },
  run: async ({ device = "cpu", json }, reporter) => {
    const memory = availableMemory();
    const models = registeredModels();
    if (json === true) {
      const result = {
        architectures: supportedModelTypes,
        machineMemory: memory,
        models: models.map((model) => toJson(model, device)),
      };
      reporter.print(JSON.stringify(result));
    } else printTable(models, { memory, device }, reporter);
    return 0;
  },
});

/** Adds the model's memory in bytes, by use and bits. */
function toJson(model: RegisteredModel, device: EstimatedDevice): object {
  const memory = USES.map((use) => [
    use,
    Object.fromEntries(BITS.map((bits) => [bits, Math.round(model.estimateMemory({ use, bits, device }))])),
  ]);
  return { ...model, family: modelFamily(model.id), memory: Object.fromEntries(memory) as object };
}

function printTable(
  models: readonly RegisteredModel[],
  { memory, device }: { readonly memory: number; readonly device: EstimatedDevice },
  reporter: Reporter,
): void {
  const rows = models.map((model) => [
    model.id,
    formatParameters(model.parameters),
    String(model.contextLength),
    ...USES.map((use) =>
      BITS.map((bits) => (model.estimateMemory({ use, bits, device }) / 1e9).toFixed(1).padStart(5)).join(" "),
    ),
    ...(device === "cpu" ? [describeFit(model, memory)] : []),
    model.license,
    [model.kind, ...(model.gated ? ["gated"] : [])].join(", "),
  ]);
  const header = [
    "MODEL",
    "SIZE",
    "CONTEXT",
    "INFERENCE 32 8 4",
    "TRAIN 32 8 4",
    ...(device === "cpu" ? ["FITS"] : []),
    "LICENSE",
    "",
  ];
  const notes = models.flatMap(({ id, note }) => (note === undefined ? [] : [`${id}: ${note}.`]));
  reporter.print(
    [
      `Architectures: ${supportedModelTypes.join(", ")}`,
      "Any model with one of them works: a folder with safetensors, a GGUF file, or a Hugging Face id. Small models:",
      "",
      formatTable([header, ...rows], [1, 2, 3, 4]),
      "",
      `INFERENCE, TRAIN: ${device === "cpu" ? "memory" : "memory of the GPU"} in GB for generation and for training an adapter, with 32, 8 and 4 bits per weight (--quantize).`,
      `${device === "cpu" ? `FITS: use and bits that fit the ${formatBytes(memory)} of free memory. ` : ""}gated: accept the terms on the model's page and set HF_TOKEN.`,
      ...notes,
    ].join("\n"),
  );
}

/**
 * Returns the most demanding use that fits, at the most bits: "train", "train 8", "inference 4" or
 * "no".
 */
function describeFit(model: RegisteredModel, memory: number): string {
  for (const use of ["train", "inference"] as const) {
    const bits = BITS.find((bits) => model.estimateMemory({ use, bits }) <= memory);
    if (bits !== undefined) return bits === 32 ? use : `${use} ${bits}`;
  }
  return "no";
}

/** Formats a number of parameters: "135M", "1.7B". */
function formatParameters(parameters: number): string {
  return parameters < 1e9 ? `${Math.round(parameters / 1e6)}M` : `${(parameters / 1e9).toFixed(1)}B`;
}
