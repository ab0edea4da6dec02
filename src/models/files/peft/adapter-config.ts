import { LlamaGymError } from "../../../core/errors.js";
import { corruptFileError } from "../file-errors.js";
import { isJsonObject, type JsonObject, type JsonValue } from "../json-file.js";

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

/** PEFT 0.21's values of fields that `AdapterConfig` lacks. */
const defaultFields: Readonly<Record<string, JsonValue>> = {
  alora_invocation_tokens: null,
  arrow_config: null,
  auto_mapping: null,
  bias: "none",
  corda_config: null,
  ensure_weight_tying: false,
  eva_config: null,
  exclude_modules: null,
  inference_mode: true,
  init_lora_weights: true,
  kasa_config: null,
  layer_replication: null,
  layers_pattern: null,
  layers_to_transform: null,
  loftq_config: {},
  lora_bias: false,
  lora_ga_config: null,
  megatron_config: null,
  megatron_core: "megatron.core",
  monteclora_config: null,
  peft_type: "LORA",
  peft_version: "0.21.2",
  qalora_group_size: 16,
  target_parameters: null,
  trainable_token_indices: null,
  use_bdlora: null,
  use_dora: false,
  use_qalora: false,
  velora_config: null,
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

function unsupportedFieldError(path: string, field: string, value: JsonValue, advice: string): LlamaGymError {
  return new LlamaGymError(
    "MODEL_UNSUPPORTED",
    `${path} has ${field} = ${JSON.stringify(value)}, which is not supported. ${advice}`,
  );
}

function checkSupported(path: string, json: JsonObject): void {
  const type = json.peft_type ?? "LORA";
  if (type !== "LORA") throw unsupportedFieldError(path, "peft_type", type, "Supported: LORA.");
  for (const [field, value] of Object.entries(json)) {
    if (!allowedFields.has(field) && !isUnset(value)) {
      throw unsupportedFieldError(
        path,
        field,
        value,
        "Supported: plain LoRA with rank-stabilized scaling, rank and alpha patterns.",
      );
    }
  }
  const initialization = json.init_lora_weights ?? true;
  if (!supportedInitializations.includes(initialization)) {
    const advice = "It changes the base model; save it in PEFT with path_initial_model_for_weight_conversion.";
    throw unsupportedFieldError(path, "init_lora_weights", initialization, advice);
  }
}

/** Typed access to the fields of an adapter_config.json. */
class ConfigReader {
  constructor(
    private readonly path: string,
    private readonly json: JsonObject,
  ) {}

  private fieldError(field: string, expected: string): LlamaGymError {
    return corruptFileError(this.path, `its field "${field}" is ${JSON.stringify(this.json[field])}, not ${expected}`);
  }

  number(field: string, fallback: number, accepts: (value: number) => boolean, expected: string): number {
    const value = this.json[field] ?? fallback;
    if (typeof value === "number" && accepts(value)) return value;
    throw this.fieldError(field, expected);
  }

  boolean(field: string): boolean {
    const value = this.json[field] ?? false;
    if (typeof value === "boolean") return value;
    throw this.fieldError(field, "true or false");
  }

  text(field: string): string | null {
    const value = this.json[field] ?? null;
    if (value === null || typeof value === "string") return value;
    throw this.fieldError(field, "a string");
  }

  names(field: string): readonly string[] | undefined {
    const value = this.json[field] ?? undefined;
    if (value === undefined) return undefined;
    if (Array.isArray(value) && value.every((item) => typeof item === "string")) return value;
    throw this.fieldError(field, "a list of names");
  }

  numbers(field: string): Readonly<Record<string, number>> {
    const value = this.json[field] ?? {};
    if (isJsonObject(value)) {
      const entries = Object.entries(value);
      if (entries.every((entry): entry is [string, number] => typeof entry[1] === "number")) {
        return Object.fromEntries(entries);
      }
    }
    throw this.fieldError(field, "an object of numbers");
  }

  targets(): string | readonly string[] {
    const value = this.json.target_modules;
    if (typeof value === "string" && value !== "") return value;
    const names = this.names("target_modules");
    if (names === undefined || names.length === 0)
      throw this.fieldError("target_modules", "a list of names or a pattern");
    return names;
  }
}

/**
 * Parses an adapter_config.json with PEFT's defaults. @throws MODEL_UNSUPPORTED naming an
 * unsupported field, FILE_CORRUPT naming an invalid one.
 */
export function parseAdapterConfig(path: string, json: JsonObject): AdapterConfig {
  checkSupported(path, json);
  const reader = new ConfigReader(path, json);
  return {
    r: reader.number("r", ADAPTER_DEFAULTS.r, (value) => Number.isInteger(value) && value >= 1, "an integer >= 1"),
    loraAlpha: reader.number("lora_alpha", ADAPTER_DEFAULTS.loraAlpha, Number.isFinite, "a number"),
    loraDropout: reader.number("lora_dropout", 0, (value) => value >= 0 && value < 1, "a number in [0, 1)"),
    targetModules: reader.targets(),
    useRslora: reader.boolean("use_rslora"),
    rankPattern: reader.numbers("rank_pattern"),
    alphaPattern: reader.numbers("alpha_pattern"),
    fanInFanOut: reader.boolean("fan_in_fan_out"),
    modulesToSave: reader.names("modules_to_save") ?? [],
    baseModelNameOrPath: reader.text("base_model_name_or_path"),
    revision: reader.text("revision"),
    taskType: reader.text("task_type"),
  };
}

/** Whether fields other than `target_modules` limit the adapted modules. */
export function limitsTargetModules(json: JsonObject): boolean {
  return ["exclude_modules", "layers_to_transform"].some((field) => !isUnset(json[field] ?? null));
}

/** Formats the adapter_config.json of PEFT 0.21, with sorted keys. */
export function formatAdapterConfig(config: AdapterConfig): JsonObject {
  const { targetModules } = config;
  const fields: JsonObject = {
    ...defaultFields,
    r: config.r,
    lora_alpha: config.loraAlpha,
    lora_dropout: config.loraDropout,
    target_modules: typeof targetModules === "string" ? targetModules : [...targetModules],
    use_rslora: config.useRslora,
    rank_pattern: { ...config.rankPattern },
    alpha_pattern: { ...config.alphaPattern },
    fan_in_fan_out: config.fanInFanOut,
    modules_to_save: config.modulesToSave.length === 0 ? null : [...config.modulesToSave],
    base_model_name_or_path: config.baseModelNameOrPath,
    revision: config.revision,
    task_type: config.taskType,
  };
  return Object.fromEntries(Object.entries(fields).sort(([a], [b]) => (a < b ? -1 : 1)));
}
