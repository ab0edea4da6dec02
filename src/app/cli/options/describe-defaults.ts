import { formatNumber } from "../../../core/format.js";
import type { SettingTable } from "../../../core/settings.js";
import { EMBEDDED_MODEL } from "../../../models/index.js";
import { ALGORITHM_NAMES, algorithms } from "../../../rl/algorithms/index.js";
import { findAlgorithm } from "../../runs/load-algorithm.js";
import { resolveTrainConfig, runSettings, type TrainOptions } from "../../runs/run-settings.js";

/** A model without defaults in the registry. */
const OTHER_MODEL = "other";

type Values = Readonly<Record<string, unknown>>;

/** Defaults of one kind of run, and its name in a description. */
interface DefaultsCase {
  readonly label: string;
  readonly config: Values;
}

/**
 * Adds to options the defaults that a run resolves. Shows those of the given model and action mode,
 * or of the embedded and of other models, with listed actions and without, where they differ; and
 * those of the given algorithm, or of each algorithm that has the setting.
 */
export function describeRunDefaults<Table extends SettingTable>(
  options: Table,
  names: readonly string[],
  { algorithm = "ppo", ...given }: Pick<TrainOptions, "algorithm" | "model" | "actionMode">,
): Table {
  const owners = Object.hasOwn(algorithms, algorithm) ? ALGORITHM_NAMES : [algorithm];
  const cases = new Map(owners.map((owner) => [owner, listRunCases(owner, given)]));
  const describeFor = (name: string, owner: string) => describeValues(name, cases.get(owner)!);
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
  resolve: (model: string) => Values,
  model?: string,
): Table {
  const cases = listModels(model).map((id) => ({ label: id, config: resolve(id) }));
  const described = names.map((name) => [name, { ...options[name], defaultText: describeValues(name, cases) }]);
  return { ...options, ...Object.fromEntries(described) };
}

function listModels(model: string | undefined): readonly string[] {
  return model === undefined ? [EMBEDDED_MODEL, OTHER_MODEL] : [model];
}

/** Returns the kinds of runs whose defaults may differ; the last one is what others are. */
function listRunCases(
  algorithm: string,
  { model, actionMode }: Pick<TrainOptions, "model" | "actionMode">,
): readonly DefaultsCase[] {
  return listModels(model).flatMap((id) => {
    const name = id === OTHER_MODEL ? "pretrained" : id;
    const resolve = (mode: TrainOptions["actionMode"], label: string) => ({
      label,
      config: { ...resolveTrainConfig({ env: "", algorithm, model: id, actionMode: mode }) },
    });
    const listed = model === undefined ? `${name} with listed actions` : "listed actions";
    return actionMode === undefined
      ? [resolve("choices", listed), resolve("free", name)]
      : // Free completions have the same defaults, and need no expression.
        [resolve(actionMode === "regex" ? "free" : actionMode, name)];
  });
}

/** Returns the default in each case, such as "256 (embedded), 16 otherwise". */
function describeValues(name: string, cases: readonly DefaultsCase[]): string | undefined {
  const labels = new Map<string | undefined, string[]>();
  for (const { label, config } of cases) {
    const value = formatDefault(config[name]);
    labels.set(value, [...(labels.get(value) ?? []), label]);
  }
  const otherwise = formatDefault(cases.at(-1)!.config[name]);
  if (labels.size === 1) return otherwise;
  const others = [...labels].filter(([value]) => value !== otherwise);
  const texts = others.map(([value, of]) => `${value ?? "off"} (${joinLabels(of)})`);
  return `${texts.join(", ")}, ${otherwise ?? "off"} otherwise`;
}

/** Joins the names of cases; the name of a model includes its runs with listed actions. */
function joinLabels(labels: readonly string[]): string {
  return labels.filter((label) => !labels.some((other) => label.startsWith(`${other} `))).join(" and ");
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

function formatDefault(value: unknown): string | undefined {
  if (typeof value === "number") return Number.isInteger(value) ? String(value) : formatNumber(value);
  if (typeof value === "boolean") return String(value);
  return typeof value === "string" && value !== "" ? value : undefined;
}
