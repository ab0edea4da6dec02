import { invalidArgument } from "../../core/errors.js";
import type { Settings } from "../../core/settings.js";
import { baseModelSettings, modelSettings, tuningSettings } from "../../models/index.js";
import { SERVICE_LORA_ALPHA, type serviceSettings } from "../../tinker/index.js";
import { findAlgorithm } from "./load-algorithm.js";
import type { TrainConfig } from "./run-settings.js";

/** Settings of a run that a service limits. */
type ServiceRunConfig = Settings<typeof modelSettings & typeof tuningSettings & typeof serviceSettings> &
  Partial<
    Pick<
      TrainConfig,
      | "actionMode"
      | "algorithm"
      | "entropyCoef"
      | "gradientWorkers"
      | "maxCompletionLength"
      | "minP"
      | "selfPlay"
      | "syncRefModel"
      | "temperature"
      | "topEntropyQuantile"
      | "topK"
      | "topP"
    >
  >;

/** Modules by the group that a service trains as a whole. */
const MODULE_GROUPS = {
  trainAttn: ["q_proj", "k_proj", "v_proj", "o_proj"],
  trainMlp: ["gate_proj", "up_proj", "down_proj"],
  trainUnembed: ["lm_head"],
} as const;

/** Settings of the engine, with what is used on a service. */
const ENGINE_SETTINGS = {
  quantize: "the service chooses the precision of its weights",
  backwardPrecision: "the service chooses its precision",
  gradientCheckpointing: "the service has its own memory",
  device: "the service has its own devices",
  threads: "the service has its own processors",
  loraDropout: "a service trains without dropout",
  layersToTransform: "a service adds an adapter to all layers",
  layersPattern: "a service adds an adapter to all layers",
  excludeModules: "a service trains whole groups of modules: select them with targetModules",
  useDora: "a service trains plain LoRA",
  bias: "a service trains no biases",
  modulesToSave: "a service trains no module as a whole",
  trainableTokenIndices: "a service trains no rows of the embedding",
  ensureWeightTying: "a service has no adapter of the embedding",
} as const satisfies Partial<Record<keyof ServiceRunConfig, string>>;

/**
 * Checks that a Tinker service can do what a run is configured to, before anything is computed.
 * @throws INVALID_ARGUMENT that names the setting and what to use
 */
export function checkService(config: ServiceRunConfig): void {
  if (config.backend === "engine") {
    const unused = (["baseUrl", "tokenizer", "critic", "maxServiceTokens"] as const).find(
      (name) => config[name] !== undefined,
    );
    if (unused !== undefined)
      throw invalidArgument(`\`${unused}\` is a setting of a Tinker service: set \`backend\` to tinker, or remove it.`);
    return;
  }
  if (config.baseUrl === undefined)
    throw invalidArgument("`backend` tinker needs the address of the service: set `baseUrl`.");
  const problem = findModelProblem(config) ?? findRunProblem(config);
  if (problem !== undefined) throw invalidArgument(`A Tinker service cannot run this: ${problem}.`);
}

function findModelProblem(config: ServiceRunConfig): string | undefined {
  const defaults = { ...baseModelSettings, ...modelSettings, ...tuningSettings };
  for (const [name, reason] of Object.entries(ENGINE_SETTINGS) as [keyof typeof ENGINE_SETTINGS, string][])
    if (config[name] !== defaults[name].default)
      return `\`${name}\` is ${String(config[name])}, but ${reason}. Remove it`;
  if (config.tuning === "full") return "`tuning` is full, but a service trains adapters. Set it to lora";
  if (config.loraAlpha !== SERVICE_LORA_ALPHA)
    return `\`loraAlpha\` is ${config.loraAlpha}, but a service scales adapters by ${SERVICE_LORA_ALPHA} / r. Change r or the learning rate`;
  parseServiceModules(config.targetModules);
  return undefined;
}

function findRunProblem(config: ServiceRunConfig): string | undefined {
  const { actionMode, entropyCoef = 0, topEntropyQuantile = 1, temperature = 1, topK = 0, topP = 1, minP = 0 } = config;
  if (config.critic !== undefined && (config.algorithm === undefined || !findAlgorithm(config.algorithm).hasCritic))
    return "`critic` estimates values for an algorithm with a value head, which this run does not have. Remove it";
  if (config.syncRefModel === true)
    return "`syncRefModel` moves a copy of the adapter, whose parameters a service does not return. Set it to false";
  if (actionMode === "regex" || actionMode === "schema")
    return (
      `\`actionMode\` ${actionMode} constrains each token by the model's logits, which a service does not return. Use free, ` +
      "or choices where actions can be listed"
    );
  if (entropyCoef > 0 && actionMode !== "choices" && actionMode !== "scored")
    return "`entropyCoef` needs the entropy of free completions, which a service does not return. Set it to 0";
  if (topEntropyQuantile < 1) return "`topEntropyQuantile` needs the entropy of each token. Set it to 1";
  if (temperature !== 1)
    return `\`temperature\` is ${temperature}, but a service trains at 1. Set it to 1; eval --temperature may differ`;
  if (topK > 0 || topP < 1 || minP > 0)
    return "topK, topP and minP leave out tokens, and a service does not say which. Set them to 0, 1 and 0";
  if (config.gradientWorkers === true) return "`gradientWorkers` compute gradients, which the service does. Remove it";
  if (config.selfPlay === true)
    return "`selfPlay` needs earlier weights in this process. Train against a fixed opponent";
  return undefined;
}

/**
 * Returns which modules of a service get an adapter. @throws INVALID_ARGUMENT for a part of a group
 */
export function parseServiceModules(targetModules: string): Readonly<Record<keyof typeof MODULE_GROUPS, boolean>> {
  if (targetModules === "all-linear") return { trainAttn: true, trainMlp: true, trainUnembed: false };
  const names = targetModules.split(",").map((name) => name.trim());
  const has = (group: keyof typeof MODULE_GROUPS) => MODULE_GROUPS[group].some((name) => names.includes(name));
  const groups = { trainAttn: has("trainAttn"), trainMlp: has("trainMlp"), trainUnembed: has("trainUnembed") };
  const selected: readonly string[] = (Object.keys(MODULE_GROUPS) as (keyof typeof MODULE_GROUPS)[]).flatMap((group) =>
    groups[group] ? MODULE_GROUPS[group] : [],
  );
  if (names.length === selected.length && names.every((name) => selected.includes(name))) return groups;
  throw invalidArgument(
    `\`targetModules\` is ${targetModules}, but a Tinker service trains whole groups: all-linear, or any of ` +
      `${Object.values(MODULE_GROUPS)
        .map((group) => group.join(","))
        .join(" | ")}.`,
  );
}
