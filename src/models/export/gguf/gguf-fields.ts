import { LlamaGymError } from "../../../core/errors.js";
import {
  type DecoderConfig,
  type RopeConfig,
  computeRopeFrequencies,
  fixedFrequencyLength,
} from "../../../engine/nn/index.js";
import type { GgufFieldValue, GgufTensorToSave } from "./write-gguf.js";

type Fields = Record<string, GgufFieldValue>;

/** What llama.cpp computes for an architecture, where it differs from the others. */
interface GgufSupport {
  /** Default "silu". */
  readonly activation?: DecoderConfig["activation"];
  /** Kinds of rope scaling other than the default. */
  readonly scalings: readonly RopeConfig["scaling"]["kind"][];
  /** Layers with positions; default all. */
  readonly hasRope?: (layer: number) => boolean;
  /** Interval of the layers without a window, where llama.cpp computes windows at all. */
  readonly fullInterval?: number;
  /** Number of layers of the model whose attention scale is of the width by head (Gemma's 27B). */
  readonly widthScaledLayers?: number;
  /** Whether the file has Granite's multipliers. */
  readonly hasMultipliers?: boolean;
}

const isEveryNth = (layer: number, n: number): boolean => (layer + 1) % n === 0;
const ORDINALS: Readonly<Record<number, string>> = { 2: "second", 6: "sixth" };

const support: Readonly<Record<string, GgufSupport>> = {
  llama: { scalings: ["linear", "yarn", "llama3"] },
  qwen2: { scalings: ["linear", "yarn"] },
  qwen3: { scalings: ["linear", "yarn"] },
  smollm3: { scalings: ["linear", "yarn"], hasRope: (layer) => !isEveryNth(layer, 4) },
  phi2: { activation: "geluTanh", scalings: [] },
  phi3: { scalings: ["longrope"] },
  gemma2: { activation: "geluTanh", scalings: [], fullInterval: 2, widthScaledLayers: 46 },
  gemma3: { activation: "geluTanh", scalings: ["linear"], fullInterval: 6, widthScaledLayers: 62 },
  olmo2: { scalings: ["linear", "yarn"] },
  granite: { scalings: ["linear", "yarn", "llama3"], hasMultipliers: true },
  gpt2: { activation: "geluTanh", scalings: [] },
};

/** Metadata of an architecture and tensors of its rotary frequencies. */
export interface GgufDescription {
  readonly fields: Fields;
  readonly tensors: readonly GgufTensorToSave[];
}

/**
 * Describes a network in llama.cpp's metadata. @throws MODEL_UNSUPPORTED for what llama.cpp does
 * not compute.
 */
export function describeGgufModel(config: DecoderConfig, name: string): GgufDescription {
  checkSupport(config, name);
  const fields: Fields = {};
  const { headDim, ropes, norm } = config;
  const rope = ropes.at(0);
  const own: Fields = {
    vocab_size: config.vocabSize,
    context_length: getContextLength(config, name),
    embedding_length: config.hiddenSize,
    block_count: config.layers.length,
    feed_forward_length: config.intermediateSize,
    "attention.head_count": config.heads,
    "attention.head_count_kv": config.keyValueHeads,
    "attention.key_length": headDim,
    "attention.value_length": headDim,
    [`attention.layer_norm_${norm.kind === "rms" ? "rms_" : ""}epsilon`]: { float: norm.epsilon },
    ...(rope === undefined ? {} : { "rope.dimension_count": rope.rotaryDim, "rope.freq_base": { float: rope.theta } }),
    ...(rope === undefined ? {} : describeScaling(rope)),
  };
  const window = config.layers.find((layer) => layer.window !== undefined)?.window;
  const { fullInterval, hasMultipliers = false } = support[name];
  if (fullInterval !== undefined && window !== undefined) own["attention.sliding_window"] = window;
  if (name === "gemma3" && window !== undefined) own["rope.freq_base_swa"] = { float: ropes[1].theta };
  if (config.logitSoftcap !== undefined) own.final_logit_softcapping = { float: config.logitSoftcap };
  if (config.attentionSoftcap !== undefined) own.attn_logit_softcapping = { float: config.attentionSoftcap };
  if (hasMultipliers) {
    own["attention.scale"] = { float: config.attentionScale };
    own.embedding_scale = { float: config.embeddingScale };
    own.residual_scale = { float: config.residualScale };
    own.logit_scale = { float: 1 / config.logitScale };
  }
  for (const [key, value] of Object.entries(own)) fields[`${name}.${key}`] = value;
  return { fields, tensors: rope === undefined ? [] : listRopeTensors(rope) };
}

function checkSupport(config: DecoderConfig, name: string): void {
  const {
    activation = "silu",
    scalings,
    hasRope = () => true,
    fullInterval,
    widthScaledLayers,
    hasMultipliers = false,
  } = support[name];
  const { layers, headDim, hiddenSize, heads } = config;
  const unsupported = (feature: string): LlamaGymError =>
    new LlamaGymError(
      "MODEL_UNSUPPORTED",
      `llama.cpp's architecture "${name}" has no ${feature}, so this ${config.modelType} model cannot be exported to GGUF. Use --format onnx or merged.`,
    );
  if (config.activation !== activation) throw unsupported(`activation ${config.activation} (only ${activation})`);
  const scale = layers.length === widthScaledLayers ? hiddenSize / heads : headDim;
  const hasOwnScale = layers.some(({ attentionScale }) => attentionScale !== undefined);
  if (hasOwnScale || (!hasMultipliers && Math.abs(config.attentionScale - scale ** -0.5) > 1e-6))
    throw unsupported(`attention scale other than ${scale} ** -0.5`);
  // llama.cpp caps both, and by default.
  if (name === "gemma2" && (config.attentionSoftcap === undefined || config.logitSoftcap === undefined))
    throw unsupported("attention scores or logits without a cap");
  for (const [layer, { rope, window }] of layers.entries()) {
    if (name !== "gpt2" && (rope !== undefined) !== hasRope(layer))
      throw unsupported(
        `layers without positions${name === "smollm3" ? " other than every fourth" : ""} (layer ${layer})`,
      );
    if (fullInterval !== undefined && (window === undefined) !== isEveryNth(layer, fullInterval))
      throw unsupported(`full attention in other layers than every ${ORDINALS[fullInterval]} (layer ${layer})`);
  }
  config.ropes.forEach(({ scaling }, index) => {
    const isSupported = scaling.kind === "default" || scaling.kind === "dynamic" || scalings.includes(scaling.kind);
    if (!isSupported || (index > 0 && scaling.kind !== "default")) throw unsupported(`rope scaling ${scaling.kind}`);
    if (scaling.kind !== "yarn") return;
    const isStandard = scaling.truncate && Math.abs(scaling.attentionFactor - yarnAttention(scaling.factor)) < 1e-6;
    if (!isStandard) throw unsupported("YaRN scaling with its own attention factor or without truncation");
  });
}

/** YaRN's attention factor, which llama.cpp computes itself (Peng et al. 2023, eq. 22). */
function yarnAttention(factor: number): number {
  return 0.1 * Math.log(factor) + 1;
}

/**
 * Returns the context within which llama.cpp computes the same: it has sliding windows for Gemma
 * alone, and no dynamic rope scaling.
 */
function getContextLength({ maxPositions, layers, ropes }: DecoderConfig, name: string): number {
  const windows = support[name].fullInterval !== undefined ? [] : layers.map(({ window }) => window ?? Infinity);
  const isLong = ropes.some(({ scaling }) => scaling.kind === "longrope");
  return Math.min(maxPositions, ...windows, isLong ? Infinity : fixedFrequencyLength(ropes));
}

function describeScaling({ scaling }: RopeConfig): Fields {
  switch (scaling.kind) {
    case "linear":
      return { "rope.scaling.type": "linear", "rope.scaling.factor": { float: scaling.factor } };
    case "yarn":
      return {
        "rope.scaling.type": "yarn",
        "rope.scaling.factor": { float: scaling.factor },
        "rope.scaling.original_context_length": scaling.originalLength,
        "rope.scaling.yarn_beta_fast": { float: scaling.betaFast },
        "rope.scaling.yarn_beta_slow": { float: scaling.betaSlow },
      };
    case "longrope":
      return {
        "rope.scaling.original_context_length": scaling.originalLength,
        "rope.scaling.attn_factor": { float: scaling.attentionFactor },
      };
    default:
      return {};
  }
}

/** Lists the tensors of factors that divide the frequencies. */
function listRopeTensors(rope: RopeConfig): GgufTensorToSave[] {
  const { scaling } = rope;
  const tensor = (name: string, values: Float32Array): GgufTensorToSave => ({
    name,
    shape: [values.length],
    type: "F32",
    readChunks: () => [values],
  });
  if (scaling.kind === "longrope")
    return [
      tensor("rope_factors_long.weight", Float32Array.from(scaling.longFactor)),
      tensor("rope_factors_short.weight", Float32Array.from(scaling.shortFactor)),
    ];
  if (scaling.kind !== "llama3") return [];
  const scaled = computeRopeFrequencies(rope, 0);
  const base = computeRopeFrequencies({ ...rope, scaling: { kind: "default" } }, 0);
  return [
    tensor(
      "rope_freqs.weight",
      base.map((frequency, i) => frequency / scaled[i]),
    ),
  ];
}
