import { suggestNames } from "../../core/suggest.js";
import { invalidArgument } from "../../core/errors.js";
import {
  checkSetting,
  choice,
  defineSettings,
  integer,
  number,
  resolveSettings,
  type Setting,
  type Settings,
  type SettingTable,
  unknownSetting,
} from "../../core/settings.js";
import { findAlgorithm } from "../runs/load-algorithm.js";
import { PROMPT_ALGORITHMS, promptRunSettingsOf } from "../runs/prompt-run-settings.js";
import {
  preferenceDataSettings,
  preferenceRunSettingsOf,
  type PreferenceRunOptions,
} from "../runs/preference-run-settings.js";
import { allSftRunSettings, dataSettings, type SftRunOptions } from "../runs/sft-run-settings.js";
import { trainSettings, trainSettingsOf } from "../runs/run-settings.js";
import type { PromptAlgorithm } from "../../rl/train/index.js";

/** Value of a setting. */
export type SettingValue = number | string | boolean;

/** Numbers from `min` to `max`, inclusive. */
export interface SearchRange {
  readonly min: number;
  readonly max: number;
  /** "log" samples each order of magnitude equally often. Default "linear". */
  readonly scale?: "linear" | "log";
  /** Number of grid values, evenly spaced over the range. */
  readonly points?: number;
}

/** The values to try: a list or a range. */
export type Dimension = readonly SettingValue[] | SearchRange;

/** The values to try by setting. */
export type SearchSpace = Readonly<Record<string, Dimension>>;

const rangeSettings = defineSettings({
  min: number({ description: "smallest value" }),
  max: number({ description: "largest value" }),
  scale: choice({ default: "linear", choices: ["linear", "log"], description: "spacing of the values" }),
  points: integer({ min: 2, description: "number of grid values" }),
});

/** Settings that cannot be searched, with the reason. */
const FIXED_SETTINGS: Readonly<Record<string, string>> = {
  seed: "every trial is trained with each of the sweep's seeds",
  evalEpisodes: "it changes nothing of the training",
  data: "all trials are trained on the same file",
  evalData: "all trials are compared on the same examples",
  evalSplit: "all trials are compared on the same examples",
  rewardFuncs: "rewards of other functions cannot be compared",
  rewardWeights: "rewards with other weights cannot be compared",
  tools: "rewards with other tools cannot be compared",
};

/** 1e-4..1e-2, 1e-4..1e-2:log, 1e-4..1e-2:log:5 */
const RANGE_PATTERN = /^(?<min>[^:]+?)\.\.(?<max>[^:]+)(?::(?<scale>[a-z]+))?(?::(?<points>[^:]+))?$/;

/**
 * Resolves a search to lists and ranges by setting. A string is the short form: "0,0.01,0.1",
 * "1e-4..1e-2:log", "1e-4..1e-2:log:5". @throws INVALID_ARGUMENT for an unknown setting, suggesting
 * the nearest one, and for invalid values.
 */
export function resolveSearchSpace(
  given: Readonly<Record<string, Dimension | string>>,
  settings: SettingTable = trainSettings,
): SearchSpace {
  const entries = Object.entries(normalizeKeys("search", given)).map(([name, dimension]) => {
    const setting = findSearchableSetting(name, settings);
    const parsed = typeof dimension === "string" ? parseShortForm(name, setting, dimension) : dimension;
    return [name, resolveDimension(name, setting, parsed)] as const;
  });
  if (entries.length === 0) throw invalidArgument("A sweep needs settings to search, with the values to try.");
  return Object.fromEntries(entries);
}

/** Whether the settings that trials share belong to runs on a file, not in an environment. */
export function isOnPrompts(train: object): boolean {
  return "data" in train || "rewardFuncs" in train;
}

/** Algorithms of runs on a file of examples. */
const EXAMPLE_ALGORITHMS = ["sft", "dpo", "kto"] as const;
export type ExampleAlgorithm = (typeof EXAMPLE_ALGORITHMS)[number];

/** Options of a run on a file of examples. */
export type ExampleTrialOptions = (SftRunOptions | PreferenceRunOptions) & { readonly algorithm: ExampleAlgorithm };

/** Returns the algorithm of runs on a file of examples; undefined for other runs. */
export function findExampleAlgorithm({ algorithm }: { readonly algorithm?: unknown }): ExampleAlgorithm | undefined {
  return EXAMPLE_ALGORITHMS.find((name) => name === algorithm);
}

const dataAlgorithm = choice({
  default: "grpo",
  choices: [...PROMPT_ALGORITHMS, ...EXAMPLE_ALGORITHMS],
  description: "Algorithm of runs on prompts, or on examples (sft, dpo, kto).",
});

function dataRunSettings(name: string): SettingTable {
  checkSetting("`algorithm`", name, dataAlgorithm);
  const algorithm = findExampleAlgorithm({ algorithm: name });
  if (algorithm === undefined) return promptRunSettingsOf(name as PromptAlgorithm);
  if (algorithm === "sft") return { ...dataSettings, ...allSftRunSettings };
  return { ...preferenceDataSettings(algorithm), ...preferenceRunSettingsOf(algorithm) };
}

/**
 * Returns the settings that trials have: those of a loaded algorithm and of runs, or those of all
 * algorithms that are searched.
 * @throws INVALID_ARGUMENT for an unknown algorithm.
 */
export function getTrialSettings(train: object, search: object): SettingTable {
  const { algorithm } = train as { readonly algorithm?: string };
  const { algorithm: searched = [] } = search as { readonly algorithm?: unknown };
  const names = typeof searched === "string" ? searched.split(",") : Array.isArray(searched) ? searched : [];
  const algorithms = names.length > 0 ? names.map((name) => String(name).trim()) : [algorithm];
  if (!isOnPrompts(train)) return Object.assign({}, ...algorithms.map((name) => trainSettingsOf(name))) as SettingTable;
  if (names.some((name) => findExampleAlgorithm({ algorithm: name }) !== undefined))
    throw invalidArgument("sft, dpo and kto train on other data and cannot be searched. Set one of them as algorithm.");
  const tables = algorithms.map((name = dataAlgorithm.default) => dataRunSettings(name));
  return Object.assign({ algorithm: dataAlgorithm }, ...tables) as SettingTable;
}

/** Converts an object's keys to camel case: batch-size and batch_size become batchSize. */
export function normalizeKeys<Value>(where: string, given: Readonly<Record<string, Value>>): Record<string, Value> {
  const result: Record<string, Value> = {};
  for (const [key, value] of Object.entries(given)) {
    const name = key.replace(/[-_]([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
    if (Object.hasOwn(result, name))
      throw invalidArgument(`${name} appears twice in ${where}, in two spellings. Remove one.`);
    result[name] = value;
  }
  return result;
}

function findSearchableSetting(name: string, settings: SettingTable): Setting {
  if (Object.hasOwn(FIXED_SETTINGS, name))
    throw invalidArgument(`${name} cannot be searched: ${FIXED_SETTINGS[name]}.`);
  if (!Object.hasOwn(settings, name)) throw unknownSetting("A run", Object.keys(settings), name);
  return settings[name];
}

function resolveDimension(name: string, setting: Setting, given: Dimension): Dimension {
  if (Array.isArray(given)) return checkList(name, setting, given as readonly SettingValue[]);
  if (typeof given === "object" && given !== null) return checkRange(name, setting, given as SearchRange);
  throw invalidArgument(`search.${name} must be a list of values or a range such as {"min": 0, "max": 1}.`);
}

function checkList(name: string, setting: Setting, values: readonly SettingValue[]): readonly SettingValue[] {
  if (values.length === 0) throw invalidArgument(`search.${name} is empty: give it the values to try.`);
  for (const value of values) checkValue(name, setting, value);
  const duplicate = values.find((value, i) => values.indexOf(value) < i);
  if (duplicate !== undefined) throw invalidArgument(`search.${name} has ${JSON.stringify(duplicate)} twice.`);
  return values;
}

function checkRange(name: string, setting: Setting, given: SearchRange): SearchRange {
  if (setting.type !== "number")
    throw invalidArgument(`${name} is not a number, so it has no range: list the values to try.`);
  const range: Settings<typeof rangeSettings> = resolveSettings(`search.${name}`, rangeSettings, given);
  const { min, max, scale, points } = range;
  if (min === undefined || max === undefined) throw invalidArgument(`search.${name} needs both min and max.`);
  for (const bound of [min, max]) checkValue(name, setting, bound);
  if (!(min < max)) throw invalidArgument(`search.${name} goes from ${min} to ${max}; its min must be below its max.`);
  if (scale === "log" && min <= 0)
    throw invalidArgument(`search.${name} is on a log scale, so its min must be above 0.`);
  return { min, max, scale, ...(points === undefined ? {} : { points }) };
}

function checkValue(name: string, setting: Setting, value: SettingValue): void {
  // JSON turns non-finite numbers into null.
  if (value === undefined || value === null) throw invalidArgument(`search.${name} has a value that is missing.`);
  resolveSettings("A run", { [name]: setting }, { [name]: value });
  if (name === "algorithm") findAlgorithm(String(value));
}

/** @throws INVALID_ARGUMENT for a malformed short form. */
function parseShortForm(name: string, setting: Setting, text: string): Dimension {
  const range = setting.type === "number" ? RANGE_PATTERN.exec(text)?.groups : undefined;
  if (range === undefined) return text.split(",").map((part) => parseValue(name, setting, part.trim()));
  const parseNumber = (part: string) => parseValue(name, setting, part.trim()) as number;
  if (range.scale !== undefined && !["linear", "log"].includes(range.scale))
    throw invalidArgument(
      `search.${name} has the unknown scale "${range.scale}". ${suggestNames(range.scale, ["linear", "log"])}`,
    );
  return {
    min: parseNumber(range.min),
    max: parseNumber(range.max),
    ...(range.scale === undefined ? {} : { scale: range.scale as "linear" | "log" }),
    ...(range.points === undefined ? {} : { points: parseNumber(range.points) }),
  };
}

function parseValue(name: string, setting: Setting, text: string): SettingValue {
  if (text === "") throw invalidArgument(`search.${name} has an empty value. Write a,b,c or, for numbers, min..max.`);
  if (setting.type === "number") {
    const value = Number(text);
    if (Number.isNaN(value)) throw invalidArgument(`search.${name} takes numbers, not "${text}".`);
    return value;
  }
  return setting.type === "boolean" && (text === "true" || text === "false") ? text === "true" : text;
}

/** Whether a grid can enumerate a dimension. */
export function isEnumerable(dimension: Dimension): boolean {
  return isList(dimension) || dimension.points !== undefined;
}

export function isList(dimension: Dimension): dimension is readonly SettingValue[] {
  return Array.isArray(dimension);
}

/** Whether a setting takes integers only. */
export function isInteger(setting: Setting): boolean {
  return setting.type === "number" && setting.integer === true;
}
