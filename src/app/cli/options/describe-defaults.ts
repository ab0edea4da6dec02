import { formatNumber } from "../../../core/format.js";
import type { SettingTable } from "../../../core/settings.js";
import { EMBEDDED_MODEL } from "../../../models/index.js";
import { ALGORITHM_NAMES, algorithms } from "../../../rl/algorithms/index.js";
import { findAlgorithm } from "../../runs/load-algorithm.js";
import { resolveTrainConfig, runSettings, type TrainOptions } from "../../runs/run-settings.js";

/** A model without defaults in the registry. */
const OTHER_MODEL = "other";

/**
 * Adds to options the defaults that a run resolves. Shows those of the given model, or of the
 * embedded and of other models where they differ; and those of the given algorithm, or of each
 * algorithm that has the setting.
 */
export function describeRunDefaults<Table extends SettingTable>(
  options: Table,
  names: readonly string[],
  { algorithm = "ppo", model }: Pick<TrainOptions, "algorithm" | "model">,
): Table {
  const models = model === undefined ? [EMBEDDED_MODEL, OTHER_MODEL] : [model];
  const owners = Object.hasOwn(algorithms, algorithm) ? ALGORITHM_NAMES : [algorithm];
  const configs = new Map(owners.map((owner) => [owner, models.map((id) => resolveDefaults(owner, id))]));
  const describeFor = (name: string, owner: string) => describeValues(name, configs.get(owner)!);
  const described = names
    .filter((name) => name !== "model" && name !== "algorithm")
    .map((name) => {
      const defaultText = joinDefaults(listOwners(name, algorithm), (owner) => describeFor(name, owner));
      return [name, { defaultText, ...options[name] }] as const;
    });
  const algorithmSetting = { ...options.algorithm, defaultText: findAlgorithm(algorithm).algorithmName };
  return {
    ...options,
    ...Object.fromEntries(described),
    ...(names.includes("algorithm") ? { algorithm: algorithmSetting } : {}),
  };
}

/**
 * Adds to options the defaults that `resolve` gives for a model: the given one, or the embedded and
 * other models where they differ.
 */
export function describeModelDefaults<Table extends SettingTable>(
  options: Table,
  names: readonly string[],
  resolve: (model: string) => Readonly<Record<string, unknown>>,
  model?: string,
): Table {
  const configs = (model === undefined ? [EMBEDDED_MODEL, OTHER_MODEL] : [model]).map(resolve);
  const described = names.map((name) => [name, { ...options[name], defaultText: describeValues(name, configs) }]);
  return { ...options, ...Object.fromEntries(described) };
}

function describeValues(name: string, configs: readonly Readonly<Record<string, unknown>>[]): string | undefined {
  const values = configs.map((config) => formatDefault(config[name]));
  if (values.every((value) => value === values[0])) return values[0];
  return `${values[0] ?? "off"} (${EMBEDDED_MODEL}), ${values[1] ?? "off"} otherwise`;
}

/** Returns the algorithms whose defaults are shown for a setting. */
function listOwners(name: string, algorithm: string): readonly string[] {
  if (Object.hasOwn(runSettings, name) || !Object.hasOwn(algorithms, algorithm)) return [algorithm];
  const owners: readonly string[] = ALGORITHM_NAMES.filter((owner) => Object.hasOwn(algorithms[owner].settings, name));
  return owners.includes(algorithm) ? [algorithm] : owners;
}

function joinDefaults(
  owners: readonly string[],
  describeFor: (owner: string) => string | undefined,
): string | undefined {
  const texts = owners.map(describeFor);
  if (texts.every((text) => text === texts[0])) return texts[0];
  return owners.map((owner, i) => `${owner} ${texts[i] ?? "off"}`).join("; ");
}

function resolveDefaults(algorithm: string, model: string): Readonly<Record<string, unknown>> {
  return { ...resolveTrainConfig({ env: "", algorithm, model }) };
}

function formatDefault(value: unknown): string | undefined {
  if (typeof value === "number") return Number.isInteger(value) ? String(value) : formatNumber(value);
  if (typeof value === "boolean") return String(value);
  return typeof value === "string" && value !== "" ? value : undefined;
}
