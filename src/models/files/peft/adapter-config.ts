import type { JsonObject, JsonValue } from "../../../core/json.js";
import { LlamaGymError } from "../../../core/errors.js";
import { JsonFields } from "../../../core/files/json-fields.js";
import { formatJson } from "../../../core/files/json-file.js";
import { LORA_DEFAULTS, type LoraConfig } from "./lora-config.js";

/** PEFT's adapter_config.json of a LoRA adapter with camelCase names. */
export interface AdapterConfig extends LoraConfig {
  /** Whether the adapted weights are stored [in, out] (GPT-2). */
  readonly fanInFanOut: boolean;
  /** The base model: a hub id or a path. */
  readonly baseModelNameOrPath: string | null;
  /** The base model's revision on the hub. */
  readonly revision: string | null;
  readonly taskType: string | null;
}

/** PEFT's defaults. */
export const ADAPTER_DEFAULTS: AdapterConfig = {
  ...LORA_DEFAULTS,
  fanInFanOut: false,
  baseModelNameOrPath: null,
  revision: null,
  taskType: "CAUSAL_LM",
};

/** Fields that are read or do not affect the adapter's computation. */
const allowedFields = new Set([
  ..."r lora_alpha lora_dropout target_modules use_rslora rank_pattern alpha_pattern fan_in_fan_out".split(" "),
  ..."modules_to_save base_model_name_or_path revision task_type peft_type peft_version auto_mapping".split(" "),
  ..."inference_mode init_lora_weights exclude_modules layers_pattern layers_to_transform".split(" "),
  ..."megatron_core qalora_group_size eva_config loftq_config corda_config lora_ga_config velora_config".split(" "),
  ..."ensure_weight_tying runtime_config bias use_dora lora_bias trainable_token_indices".split(" "),
]);

/** Initializations that leave the base model unchanged. */
const supportedInitializations: readonly JsonValue[] = [true, false, null, "gaussian", "eva", "orthogonal"];

function isUnset(value: JsonValue): boolean {
  if (value === null || value === false || value === "none") return true;
  return typeof value === "object" && Object.keys(value).length === 0;
}

function checkSupported(path: string, json: JsonObject): void {
  const check = (field: string, value: JsonValue, isSupported: boolean, advice: string): void => {
    if (isSupported) return;
    throw new LlamaGymError(
      "MODEL_UNSUPPORTED",
      `${path} has ${field} = ${formatJson(value)}, which is not supported. ${advice}`,
    );
  };
  const type = json.peft_type ?? "LORA";
  check("peft_type", type, type === "LORA", "Supported: LORA.");
  const supported =
    "Supported: LoRA and DoRA with rank-stabilized scaling, rank and alpha patterns, biases, modules_to_save and trainable tokens. " +
    "Merge another adapter into its base model in PEFT, merge_and_unload().save_pretrained(FOLDER), and open that folder.";
  for (const [field, value] of Object.entries(json))
    check(field, value, allowedFields.has(field) || isUnset(value), supported);
  const initialization = json.init_lora_weights ?? true;
  const advice = "It changes the base model; save it in PEFT with path_initial_model_for_weight_conversion.";
  check("init_lora_weights", initialization, supportedInitializations.includes(initialization), advice);
}

/**
 * Parses an adapter_config.json with PEFT's defaults. @throws MODEL_UNSUPPORTED naming an
 * unsupported field, FILE_CORRUPT naming an invalid one.
 */
export function parseAdapterConfig(path: string, json: JsonObject): AdapterConfig {
  checkSupported(path, json);
  const fields = new JsonFields(json, path);
  return {
    r: fields.size("r", ADAPTER_DEFAULTS.r),
    loraAlpha: fields.number("lora_alpha", ADAPTER_DEFAULTS.loraAlpha, Number.isFinite, "a number"),
    loraDropout: fields.number("lora_dropout", 0, (value) => value >= 0 && value < 1, "a number in [0, 1)"),
    targetModules: readTargetModules(fields),
    useRslora: fields.flag("use_rslora", false),
    rankPattern: readPatterns(fields, "rank_pattern"),
    alphaPattern: readPatterns(fields, "alpha_pattern"),
    layersToTransform: readLayers(fields),
    layersPattern: readNames(fields, "layers_pattern"),
    excludeModules: readNames(fields, "exclude_modules"),
    fanInFanOut: fields.flag("fan_in_fan_out", false),
    useDora: fields.flag("use_dora", false),
    bias: readBias(fields),
    loraBias: fields.flag("lora_bias", false),
    modulesToSave: fields.texts("modules_to_save") ?? [],
    trainableTokenIndices: readTokenIndices(fields),
    ensureWeightTying: fields.flag("ensure_weight_tying", false),
    baseModelNameOrPath: fields.text("base_model_name_or_path") ?? null,
    revision: fields.text("revision") ?? null,
    taskType: fields.text("task_type") ?? null,
  };
}

const BIASES = ["none", "lora_only", "all"] as const;

function readBias(fields: JsonFields): AdapterConfig["bias"] {
  const given = fields.text("bias") ?? "none";
  const bias = BIASES.find((each) => each === given);
  if (bias === undefined) throw fields.unsupportedFieldError("bias", `Supported: ${BIASES.join(", ")}.`);
  return bias;
}

function readTokenIndices(fields: JsonFields): AdapterConfig["trainableTokenIndices"] {
  const value = fields.json.trainable_token_indices ?? [];
  const isTokens = (tokens: unknown) =>
    Array.isArray(tokens) && tokens.every((token) => Number.isSafeInteger(token) && (token as number) >= 0);
  if (isTokens(value) || (typeof value === "object" && !Array.isArray(value) && Object.values(value).every(isTokens)))
    return value as unknown as AdapterConfig["trainableTokenIndices"];
  throw fields.invalidFieldError("trainable_token_indices", "token ids, or token ids by module");
}

function readTargetModules(fields: JsonFields): string | readonly string[] {
  const { target_modules: value } = fields.json;
  const targets = typeof value === "string" ? value : (fields.texts("target_modules") ?? []);
  if (targets.length > 0) return targets;
  throw fields.invalidFieldError("target_modules", "a list of names or a pattern");
}

/** Reads a name, a pattern or a list of names. */
function readNames(fields: JsonFields, field: string): string | readonly string[] {
  return typeof fields.json[field] === "string" ? fields.text(field)! : (fields.texts(field) ?? []);
}

function readLayers(fields: JsonFields): number | readonly number[] {
  const isLayer = (layer: unknown) => Number.isInteger(layer) && (layer as number) >= 0;
  const value = fields.json.layers_to_transform ?? [];
  if (isLayer(value) || (Array.isArray(value) && value.every(isLayer))) return value as number | readonly number[];
  throw fields.invalidFieldError("layers_to_transform", "an integer >= 0 or a list of them");
}

/**
 * Limits of patterns, which come with adapters: more, or a repeated group, could take exponential
 * time to match.
 */
const MAX_PATTERNS = 10_000;
const MAX_PATTERN_LENGTH = 1000;
const MAX_PATTERN_QUANTIFIERS = 4;

/** Reads numbers by regular expression, which PEFT writes as plain module names or paths. */
function readPatterns(fields: JsonFields, field: string): Readonly<Record<string, number>> {
  const patterns = fields.numberMap(field);
  const isSafe = (pattern: string): boolean =>
    pattern.length <= MAX_PATTERN_LENGTH &&
    !/\)[*+?{]/u.test(pattern) &&
    (pattern.match(/[*+?{]/gu)?.length ?? 0) <= MAX_PATTERN_QUANTIFIERS;
  const names = Object.keys(patterns);
  if (names.length <= MAX_PATTERNS && names.every(isSafe)) return patterns;
  const limits = `at most ${MAX_PATTERNS} patterns of ${MAX_PATTERN_LENGTH} characters and ${MAX_PATTERN_QUANTIFIERS} quantifiers`;
  throw fields.unsupportedFieldError(field, `Supported: ${limits}, none of them after a group.`);
}

/**
 * Whether the adapted modules depend on a regular expression, which a file must not make this
 * process match: on one for targets or exclusions, or on a name of the list of layers that is not
 * plain.
 */
export function hasModulePattern({ targetModules, excludeModules, layersPattern }: AdapterConfig): boolean {
  const lists = [layersPattern].flat();
  const isPattern = (names: string | readonly string[]) => typeof names === "string" && names !== "";
  return (
    (isPattern(targetModules) && targetModules !== "all-linear") ||
    isPattern(excludeModules) ||
    lists.some((name) => !/^\w*$/u.test(name))
  );
}

function copyTokens(tokens: AdapterConfig["trainableTokenIndices"]): JsonValue {
  return Array.isArray(tokens)
    ? [...(tokens as readonly number[])]
    : Object.fromEntries(Object.entries(tokens).map(([module, list]) => [module, [...(list as readonly number[])]]));
}

/**
 * Formats an adapter_config.json with sorted keys. Only fields that PEFT 0.11 has are written,
 * since older versions reject unknown ones, and later ones such as `exclude_modules` (0.14) if they
 * are set; the others have PEFT's defaults.
 */
export function formatAdapterConfig(config: AdapterConfig): JsonObject {
  const { targetModules, modulesToSave, layersToTransform, layersPattern, excludeModules } = config;
  const { trainableTokenIndices: tokens } = config;
  const hasTokens = Object.keys(tokens).length > 0;
  const copy = <Value>(value: Value | readonly Value[]) => (Array.isArray(value) ? [...value] : value) as JsonValue;
  const isEmpty = (value: number | string | readonly unknown[]) => typeof value !== "number" && value.length === 0;
  return {
    alpha_pattern: { ...config.alphaPattern },
    base_model_name_or_path: config.baseModelNameOrPath,
    bias: config.bias,
    ...(config.ensureWeightTying ? { ensure_weight_tying: true } : {}),
    ...(isEmpty(excludeModules) ? {} : { exclude_modules: copy(excludeModules) }),
    fan_in_fan_out: config.fanInFanOut,
    inference_mode: true,
    init_lora_weights: true,
    ...(isEmpty(layersPattern) ? {} : { layers_pattern: copy(layersPattern) }),
    ...(isEmpty(layersToTransform) ? {} : { layers_to_transform: copy(layersToTransform) }),
    lora_alpha: config.loraAlpha,
    ...(config.loraBias ? { lora_bias: true } : {}),
    lora_dropout: config.loraDropout,
    modules_to_save: modulesToSave.length === 0 ? null : [...modulesToSave],
    peft_type: "LORA",
    r: config.r,
    rank_pattern: { ...config.rankPattern },
    revision: config.revision,
    target_modules: copy(targetModules),
    task_type: config.taskType,
    ...(hasTokens ? { trainable_token_indices: copyTokens(tokens) } : {}),
    ...(config.useDora ? { use_dora: true } : {}),
    use_rslora: config.useRslora,
  };
}
