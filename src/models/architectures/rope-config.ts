import { LlamaGymError } from "../../core/errors.js";
import type { RopeConfig, RopeScaling } from "../../engine/nn/index.js";
import type { JsonFields } from "../../core/files/json-fields.js";

/** Architecture-specific context of the rotary embedding. */
export interface RopeContext {
  readonly headDim: number;
  readonly maxPositions: number;
  /** Default of rope_theta; Transformers' default is 10,000. */
  readonly defaultTheta?: number;
  /** Default of partial_rotary_factor; undefined ignores the field and rotates the whole head. */
  readonly defaultPartialRotaryFactor?: number;
  /** Default of original_max_position_embeddings; Transformers uses max_position_embeddings. */
  readonly defaultOriginalLength?: number;
  /** Names of scaling kinds in older files of this architecture. */
  readonly aliases?: Readonly<Record<string, string>>;
}

/**
 * Reads a rotary embedding shared by all layers, in Transformers 5's form (`rope_parameters`) or
 * the older one (`rope_theta`, `rope_scaling`, `partial_rotary_factor`).
 */
export function readRope(config: JsonFields, context: RopeContext): RopeConfig {
  const scaling = config.object("rope_scaling");
  const ropeFields =
    scaling !== undefined && Object.keys(scaling.json).length > 0 ? scaling : config.object("rope_parameters");
  return readRopeObject(config, ropeFields, config.positive("rope_theta", context.defaultTheta ?? 10_000), context);
}

/** Reads one object of rope fields (undefined for the default kind); `theta` is the fallback. */
export function readRopeObject(
  config: JsonFields,
  fields: JsonFields | undefined,
  theta: number,
  context: RopeContext,
): RopeConfig {
  const rotaryDim = readRotaryDim(config, fields, context);
  return {
    theta: fields?.positive("rope_theta", theta) ?? theta,
    rotaryDim,
    scaling: fields === undefined ? { kind: "default" } : readScaling(config, fields, rotaryDim, context),
  };
}

function readRotaryDim(
  config: JsonFields,
  fields: JsonFields | undefined,
  { headDim, defaultPartialRotaryFactor }: RopeContext,
): number {
  let partialFactor = 1;
  if (defaultPartialRotaryFactor !== undefined) {
    const configFactor = config.positive("partial_rotary_factor", defaultPartialRotaryFactor);
    partialFactor = fields?.positive("partial_rotary_factor", configFactor) ?? configFactor;
  }
  const rotaryDim = Math.floor(headDim * partialFactor);
  if (rotaryDim >= 2 && rotaryDim % 2 === 0 && rotaryDim <= headDim) return rotaryDim;
  throw new LlamaGymError(
    "MODEL_UNSUPPORTED",
    `${config.path} requires rotary positions on ${rotaryDim} of a head's ${headDim} dimensions ` +
      `(partial_rotary_factor ${partialFactor}). Supported: an even number from 2 to head_dim.`,
  );
}

type ScalingReader = (config: JsonFields, fields: JsonFields, rotaryDim: number, context: RopeContext) => RopeScaling;

const scalingReaders: Readonly<Record<RopeScaling["kind"], ScalingReader>> = {
  default: () => ({ kind: "default" }),
  linear: (_, fields) => ({ kind: "linear", factor: fields.positive("factor") }),
  dynamic: (_config, fields, _rotaryDim, { maxPositions }) => ({
    kind: "dynamic",
    factor: fields.positive("factor"),
    originalLength: maxPositions,
  }),
  yarn: (config, fields, _rotaryDim, context) => {
    const originalLength = readOriginalLength(config, fields, context);
    const factor = fields.positive("factor", context.maxPositions / originalLength);
    return {
      kind: "yarn",
      factor,
      originalLength,
      betaFast: fields.positive("beta_fast", 32),
      betaSlow: fields.positive("beta_slow", 1),
      attentionFactor: fields.optionalPositive("attention_factor") ?? computeYarnAttentionFactor(fields, factor),
      truncate: fields.flag("truncate", true),
    };
  },
  longrope: (config, fields, rotaryDim, context) => {
    const originalLength = readOriginalLength(config, fields, context);
    const factor = fields.positive("factor", context.maxPositions / originalLength);
    return {
      kind: "longrope",
      shortFactor: readFactors(fields, "short_factor", rotaryDim / 2),
      longFactor: readFactors(fields, "long_factor", rotaryDim / 2),
      originalLength,
      attentionFactor:
        fields.optionalPositive("attention_factor") ?? inferLongRopeAttentionFactor(factor, originalLength),
    };
  },
  llama3: (config, fields, _rotaryDim, context) => ({
    kind: "llama3",
    factor: fields.positive("factor"),
    lowFrequencyFactor: fields.positive("low_freq_factor"),
    highFrequencyFactor: fields.positive("high_freq_factor"),
    originalLength: readOriginalLength(config, fields, context),
  }),
};

export function inferLongRopeAttentionFactor(factor: number, originalLength: number): number {
  return factor <= 1 ? 1 : Math.sqrt(1 + Math.log(factor) / Math.log(originalLength));
}

function readScaling(config: JsonFields, fields: JsonFields, rotaryDim: number, context: RopeContext): RopeScaling {
  const name = fields.text("rope_type") ?? fields.text("type") ?? "default";
  const kind = context.aliases?.[name] ?? name;
  if (Object.hasOwn(scalingReaders, kind))
    return scalingReaders[kind as RopeScaling["kind"]](config, fields, rotaryDim, context);
  throw fields.unsupportedFieldError(
    fields.has("rope_type") ? "rope_type" : "type",
    `Supported: ${Object.keys(scalingReaders).join(", ")}.`,
  );
}

/** The top-level field takes precedence over the one in the rope object, as in Transformers. */
function readOriginalLength(config: JsonFields, fields: JsonFields, context: RopeContext): number {
  const field = "original_max_position_embeddings";
  const fallback = context.defaultOriginalLength ?? context.maxPositions;
  return config.optionalSize(field) ?? fields.size(field, fallback);
}

/**
 * Computes YaRN's attention factor (Peng et al. 2023, eq. 22), in DeepSeek's form where both
 * mscales are given.
 */
function computeYarnAttentionFactor(fields: JsonFields, factor: number): number {
  const getMscale = (weight: number) => (factor <= 1 ? 1 : 0.1 * weight * Math.log(factor) + 1);
  const [mscaleField, mscaleAllDim] = ["mscale", "mscale_all_dim"].map((field) => fields.json[field]);
  const hasBoth =
    typeof mscaleField === "number" && typeof mscaleAllDim === "number" && mscaleField !== 0 && mscaleAllDim !== 0;
  return hasBoth ? getMscale(mscaleField) / getMscale(mscaleAllDim) : getMscale(1);
}

function readFactors(fields: JsonFields, field: string, length: number): readonly number[] {
  const factors = fields.numbers(field);
  if (factors?.length === length && factors.every((factor) => factor > 0)) return factors;
  throw fields.invalidFieldError(field, `a list of ${length} numbers above 0, one for each pair of rotary dimensions`);
}
