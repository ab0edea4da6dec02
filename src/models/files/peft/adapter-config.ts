import { LlamaGymError } from "../../../core/errors.js";
import { JsonFields } from "../json-fields.js";
import { formatJson, type JsonObject, type JsonValue } from "../json-file.js";

/** PEFT's adapter_config.json of a LoRA adapter with camelCase names. */
export interface AdapterConfig {
  readonly r: number;
  readonly loraAlpha: number;
  readonly loraDropout: number;
  /** Module names (full paths or suffixes), a regular expression for full paths, or "all-linear". */
  readonly targetModules: string | readonly string[];
  /** Scales by alpha / sqrt(r) instead of alpha / r. */
  readonly useRslora: boolean;
  /** Ranks by regular expression for the end of a module's path. */
  readonly rankPattern: Readonly<Record<string, number>>;
  /** Alphas by the same rule. */
  readonly alphaPattern: Readonly<Record<string, number>>;
  /** Whether the adapted weights are stored [in, out] (GPT-2). */
  readonly fanInFanOut: boolean;
  /** Modules that are fully trained and saved. */
  readonly modulesToSave: readonly string[];
  /** The base model: a hub id or a path. */
  readonly baseModelNameOrPath: string | null;
  /** The base model's revision on the hub. */
  readonly revision: string | null;
  readonly taskType: string | null;
}

/** PEFT's defaults. */
export const ADAPTER_DEFAULTS: AdapterConfig = {
  r: 8,
  loraAlpha: 8,
  loraDropout: 0,
  targetModules: "all-linear",
  useRslora: false,
  rankPattern: {},
  alphaPattern: {},
  fanInFanOut: false,
  modulesToSave: [],
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
  ..."ensure_weight_tying runtime_config".split(" "),
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
  const supported = "Supported: plain LoRA with rank-stabilized scaling, rank and alpha patterns.";
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
    fanInFanOut: fields.flag("fan_in_fan_out", false),
    modulesToSave: fields.texts("modules_to_save") ?? [],
    baseModelNameOrPath: fields.text("base_model_name_or_path") ?? null,
    revision: fields.text("revision") ?? null,
    taskType: fields.text("task_type") ?? null,
  };
}

function readTargetModules(fields: JsonFields): string | readonly string[] {
  const { target_modules: value } = fields.json;
  const targets = typeof value === "string" ? value : (fields.texts("target_modules") ?? []);
  if (targets.length > 0) return targets;
  throw fields.invalidFieldError("target_modules", "a list of names or a pattern");
}

/** Limits of patterns, which come with adapters: more, or a repeated group, could take exponential time to match. */
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

/** Whether the adapted modules depend on more than names: on a pattern, or on fields other than `target_modules`. */
export function limitsTargetModules(json: JsonObject): boolean {
  const hasPattern = typeof json.target_modules === "string" && json.target_modules !== "all-linear";
  return hasPattern || ["exclude_modules", "layers_to_transform"].some((field) => !isUnset(json[field] ?? null));
}

/**
 * Formats an adapter_config.json with sorted keys. Only fields that PEFT 0.11 has are written, since older versions reject
 * unknown ones; the others have PEFT's defaults.
 */
export function formatAdapterConfig(config: AdapterConfig): JsonObject {
  const { targetModules, modulesToSave } = config;
  return {
    alpha_pattern: { ...config.alphaPattern },
    base_model_name_or_path: config.baseModelNameOrPath,
    bias: "none",
    fan_in_fan_out: config.fanInFanOut,
    inference_mode: true,
    init_lora_weights: true,
    lora_alpha: config.loraAlpha,
    lora_dropout: config.loraDropout,
    modules_to_save: modulesToSave.length === 0 ? null : [...modulesToSave],
    peft_type: "LORA",
    r: config.r,
    rank_pattern: { ...config.rankPattern },
    revision: config.revision,
    target_modules: typeof targetModules === "string" ? targetModules : [...targetModules],
    task_type: config.taskType,
    use_rslora: config.useRslora,
  };
}
