import { invalidArgument } from "../core/errors.js";
import { boolean, choice, defineSettings, integer, number, text, type Settings } from "../core/settings.js";
import type { LoraConfig } from "./files/index.js";
import { checkBackwardPrecision } from "./causal-lm.js";
import { EMBEDDED_MODEL } from "./embedded-model.js";

const LLAMAGYM = "LlamaGym 0.1.1";

/** A model and how it computes, on any machine. */
export const baseModelSettings = defineSettings(
  {
    model: text({
      default: EMBEDDED_MODEL,
      short: "m",
      common: true,
      valueName: "path or id",
      description: "Model: a folder, a GGUF file, a Hugging Face id, or embedded, the model included in llamagym.",
    }),
    quantize: choice({
      default: "none",
      choices: ["none", "8", "4"],
      aliases: [
        { name: "loadIn8bit", value: "8" },
        { name: "loadIn4bit", value: "4" },
      ],
      description: "Bits of the frozen weights; fewer bits take less memory.",
    }),
    backwardPrecision: choice({
      default: "float32",
      choices: ["float32", "int8"],
      description: "Precision of gradients through frozen weights. int8 is faster and less exact.",
    }),
    gradientCheckpointing: choice({
      default: "auto",
      choices: ["auto", "true", "false"],
      changeable: "resume",
      description:
        "Compute values inside of layers again for gradients instead of keeping them: less memory, slower, the same gradients. auto: where 256 tokens per pass take too much memory.",
    }),
    splitSpecialTokens: boolean({
      default: true,
      description:
        "Encode special tokens that are written in messages, observations, tools and examples as plain text, not as control tokens.",
    }),
  },
  { group: "Model", scope: "model" },
);

/** How a model is opened. */
export const modelSettings = defineSettings(
  {
    ...baseModelSettings,
    adapter: text({ valueName: "path or id", common: true, description: "LoRA adapter to start from." }),
    device: choice({
      default: "auto",
      choices: ["auto", "cpu", "webgpu"],
      changeable: "resume",
      common: true,
      description:
        "Execution device. auto: the GPU if npm's webgpu is installed, it multiplies matrices at least twice as fast as the CPU and the model has at least 20 million parameters; else the CPU.",
    }),
    threads: integer({
      min: 1,
      changeable: "resume",
      description: "Number of threads per operation. Default: OMP_NUM_THREADS, or all cores.",
    }),
    checkMemory: boolean({
      default: true,
      changeable: "resume",
      description: "Refuse to start a run that needs more memory than is free.",
    }),
  },
  { group: "Model", scope: "model" },
);

/** Parameters that are trained. */
export const tuningSettings = defineSettings(
  {
    tuning: choice({
      default: "lora",
      choices: ["lora", "full"],
      description: "Trained parameters: a LoRA adapter, or all weights.",
      source: LLAMAGYM,
    }),
    r: integer({ default: 16, min: 1, description: "Rank of the LoRA adapter.", source: LLAMAGYM }),
    loraAlpha: number({
      default: 32,
      above: 0,
      description: "Scale of the LoRA adapter, divided by its rank.",
      source: LLAMAGYM,
    }),
    loraDropout: number({ default: 0, min: 0, max: 0.99, description: "Dropout of the LoRA adapter." }),
    targetModules: text({
      default: "all-linear",
      valueName: "names",
      description:
        "Comma-separated names of the modules with an adapter. all-linear selects the linear modules of all layers.",
    }),
    layersToTransform: text({
      valueName: "layers",
      description:
        "Comma-separated layers with an adapter, counted from 0; 22-29 is a range, last-4 the last four layers of any model, all every layer. Layers below the first one are frozen and computed once. Off: every layer.",
    }),
    layersPattern: text({
      valueName: "names",
      description: "Comma-separated names of the list of layers in module paths, for layersToTransform. Default: any.",
    }),
    excludeModules: text({
      valueName: "names",
      description: "Comma-separated names of modules without an adapter, among those of targetModules.",
    }),
    useDora: boolean({
      default: false,
      description: "Train a magnitude for each output of the adapted modules (DoRA).",
    }),
    bias: choice({
      default: "none",
      choices: ["none", "lora_only", "all"],
      description: "Biases of the model that are trained: those of the adapted modules, or all.",
    }),
    modulesToSave: text({
      valueName: "names",
      description:
        "Comma-separated ends of the paths of modules that are trained as a whole and saved with the adapter, such as embed_tokens,lm_head.",
    }),
    trainableTokenIndices: text({
      valueName: "ids",
      description: "Comma-separated token ids whose rows of the embedding are trained, such as those of added tokens.",
    }),
    ensureWeightTying: boolean({
      default: false,
      description: "Keep a tied output matrix tied to an embedding that modulesToSave or targetModules name.",
    }),
  },
  { group: "Trained parameters", scope: "model" },
);

/** Token budget of a micro-batch. */
export const microBatchTokens = integer({
  min: 1,
  changeable: "resume",
  description:
    "Maximum number of tokens per forward and backward pass. Lower it if memory runs out. Default: what fits into about 2 GB, 1 GB with quantized weights, and an eighth of the machine's memory, from 256 to 2,048.",
});

type TuningConfig = Settings<typeof modelSettings & typeof tuningSettings>;

/** @throws INVALID_ARGUMENT for settings that contradict each other or would have no effect. */
export function checkTuning(config: Omit<TuningConfig, "model" | "adapter" | "threads" | "splitSpecialTokens">): void {
  const { device, tuning, quantize, backwardPrecision } = config;
  const { tuning: _, ...adapterSettings } = tuningSettings;
  const adapterSetting = (Object.keys(adapterSettings) as (keyof typeof adapterSettings)[]).find(
    (name) => config[name] !== adapterSettings[name].default,
  );
  if (adapterSetting !== undefined && tuning === "full")
    throw invalidArgument(
      `\`${adapterSetting}\` is a setting of the adapter, but tuning "full" trains no adapter. Remove one of them.`,
    );
  checkBackwardPrecision({ device, quantize: parseQuantizeBits(quantize), backwardPrecision });
  if (backwardPrecision === "int8" && tuning === "full")
    throw invalidArgument(
      '`backwardPrecision` "int8" is for frozen weights, but `tuning` "full" freezes none. Remove one of them.',
    );
}

/**
 * Returns the options of the adapter that the settings describe. @throws INVALID_ARGUMENT for
 * layers that are not numbers.
 */
export function parseLoraOptions(config: Settings<typeof tuningSettings>): Partial<LoraConfig> {
  const { r, loraAlpha, loraDropout, targetModules, layersToTransform, layersPattern, excludeModules } = config;
  const { useDora, bias, modulesToSave, trainableTokenIndices, ensureWeightTying } = config;
  return {
    r,
    loraAlpha,
    loraDropout,
    targetModules: targetModules === "all-linear" ? targetModules : splitNames(targetModules),
    layersToTransform: layersToTransform === "all" ? [] : splitNames(layersToTransform).flatMap(parseLayerRange),
    layersPattern: splitNames(layersPattern),
    excludeModules: splitNames(excludeModules),
    useDora,
    bias,
    modulesToSave: splitNames(modulesToSave),
    trainableTokenIndices: splitNames(trainableTokenIndices).map(parseTokenId),
    ensureWeightTying,
  };
}

function parseTokenId(text: string): number {
  if (/^\d{1,9}$/u.test(text)) return Number(text);
  throw invalidArgument(`\`trainableTokenIndices\` must be token ids such as 151665,151666, got "${text}".`);
}

function splitNames(names = ""): string[] {
  return names.split(",").flatMap((name) => (name.trim() === "" ? [] : [name.trim()]));
}

/** More layers than any model has. */
const MAX_LAYERS = 10_000;

function parseLayerRange(range: string): number[] {
  const fromEnd = /^last-(?<count>\d+)$/u.exec(range)?.groups?.count;
  if (fromEnd !== undefined && Number(fromEnd) >= 1 && Number(fromEnd) <= MAX_LAYERS)
    return Array.from({ length: Number(fromEnd) }, (_, i) => i - Number(fromEnd));
  const match = /^(?<first>\d+)(?:-(?<last>\d+))?$/u.exec(range);
  const first = Number(match?.groups?.first);
  const last = Number(match?.groups?.last ?? first);
  if (first <= last && last < MAX_LAYERS) return Array.from({ length: last - first + 1 }, (_, i) => first + i);
  throw invalidArgument(`\`layersToTransform\` must be layers such as 22-29, 0,1,5, last-4 or all, got "${range}".`);
}

/** Parses the setting `gradientCheckpointing`; undefined for auto. */
export function parseGradientCheckpointing(setting: TuningConfig["gradientCheckpointing"]): boolean | undefined {
  return setting === "auto" ? undefined : setting === "true";
}

/** Parses the setting `quantize`. */
export function parseQuantizeBits(setting: TuningConfig["quantize"]): 8 | 4 | undefined {
  return setting === "none" ? undefined : setting === "8" ? 8 : 4;
}
