import { nameHint } from "../../envs/registry/nearest-name.js";
import {
  invalid,
  resolveSettings,
  unknownSetting,
  type Setting,
  type SettingTable,
  type Settings,
} from "../../algorithms/shared/settings.js";
import { trainSettings } from "../settings.js";

/** What a setting can be. */
export type SettingValue = number | string | boolean;

/** Numbers from `min` to `max`, both among them. */
export interface SearchRange {
  readonly min: number;
  readonly max: number;
  /** "log" tries as many values from 0.001 to 0.01 as from 0.01 to 0.1. Default "linear". */
  readonly scale?: "linear" | "log";
  /** Values of a grid, evenly over the range. */
  readonly points?: number;
}

/** What is tried of a setting: a list, or a range. */
export type Dimension = readonly SettingValue[] | SearchRange;

/** What is tried, by the names of settings. */
export type SearchSpace = Readonly<Record<string, Dimension>>;

const rangeSettings = {
  min: { default: undefined, description: "the least value", source: "ours" },
  max: { default: undefined, description: "the largest value", source: "ours" },
  scale: { default: "linear", choices: ["linear", "log"], description: "how values lie in it", source: "ours" },
  points: { default: undefined, integer: true, min: 2, description: "values of a grid", source: "ours" },
} as const satisfies SettingTable;

/** Settings that are no matter of search, and why. */
const NOT_SEARCHED: Readonly<Record<string, string>> = {
  seed: "every trial is trained with each of the sweep's seeds",
  evalEpisodes: "it changes nothing of the training",
};

/** 1e-4..1e-2, 1e-4..1e-2:log, 1e-4..1e-2:log:5 */
const RANGE = /^(?<min>[^:]+?)\.\.(?<max>[^:]+)(?::(?<scale>[a-z]+))?(?::(?<points>[^:]+))?$/;

/**
 * A search as objects and lists, names as in the table of settings. A text is the short form: "0,0.01,0.1", "1e-4..1e-2:log",
 * "1e-4..1e-2:log:5". Throws INVALID_ARGUMENT for an unknown setting, with the nearest known one, and for values that it cannot have.
 */
export function resolveSearch(given: Readonly<Record<string, Dimension | string>>): SearchSpace {
  const entries = Object.entries(byOwnNames("search", given)).map(([name, dimension]) => {
    const setting = searchedSetting(name);
    const read = typeof dimension === "string" ? readShortForm(name, setting, dimension) : dimension;
    return [name, resolveDimension(name, setting, read)] as const;
  });
  if (entries.length === 0) throw invalid("A sweep needs something to search: settings with the values to try.");
  return Object.fromEntries(entries);
}

/** An object's keys as settings are called: max-new-tokens and max_new_tokens are maxNewTokens. */
export function byOwnNames<Value>(where: string, given: Readonly<Record<string, Value>>): Record<string, Value> {
  const result: Record<string, Value> = {};
  for (const [key, value] of Object.entries(given)) {
    const name = key.replace(/[-_]([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
    if (Object.hasOwn(result, name)) throw invalid(`${name} is twice in ${where}, in two spellings. Leave one out.`);
    result[name] = value;
  }
  return result;
}

function searchedSetting(name: string): Setting {
  if (Object.hasOwn(NOT_SEARCHED, name)) throw invalid(`${name} cannot be searched: ${NOT_SEARCHED[name]}.`);
  if (!Object.hasOwn(trainSettings, name)) throw unknownSetting("A run", Object.keys(trainSettings), name);
  return trainSettings[name];
}

function resolveDimension(name: string, setting: Setting, given: Dimension): Dimension {
  if (Array.isArray(given)) return checkedList(name, setting, given as readonly SettingValue[]);
  if (typeof given === "object" && given !== null) return checkedRange(name, setting, given as SearchRange);
  throw invalid(`search.${name} must be a list of values or a range such as {"min": 0, "max": 1}.`);
}

function checkedList(name: string, setting: Setting, values: readonly SettingValue[]): readonly SettingValue[] {
  if (values.length === 0) throw invalid(`search.${name} is empty: give it the values to try.`);
  for (const value of values) checkValue(name, setting, value);
  const again = values.find((value, i) => values.indexOf(value) < i);
  if (again !== undefined) throw invalid(`search.${name} has ${JSON.stringify(again)} twice.`);
  return values;
}

function checkedRange(name: string, setting: Setting, given: SearchRange): SearchRange {
  if (!isNumber(setting)) throw invalid(`${name} is no number, so it has no range: list the values to try.`);
  const range: Settings<typeof rangeSettings> = resolveSettings(`search.${name}`, rangeSettings, given);
  const { min, max, scale, points } = range;
  if (min === undefined || max === undefined) throw invalid(`search.${name} needs both min and max.`);
  for (const end of [min, max]) checkValue(name, setting, end);
  if (!(min < max)) throw invalid(`search.${name} goes from ${min} to ${max}; its min must be below its max.`);
  if (scale === "log" && min <= 0) throw invalid(`search.${name} is on a log scale, so its min must be above 0.`);
  return { min, max, scale, ...(points === undefined ? {} : { points }) };
}

function checkValue(name: string, setting: Setting, value: SettingValue): void {
  // Null is what a number that JSON cannot hold becomes.
  if (value === undefined || value === null) throw invalid(`search.${name} has a value that is missing.`);
  resolveSettings("A run", { [name]: setting }, { [name]: value });
}

/** Throws INVALID_ARGUMENT for a text that cannot be read. */
function readShortForm(name: string, setting: Setting, text: string): Dimension {
  const range = isNumber(setting) ? RANGE.exec(text)?.groups : undefined;
  if (range === undefined) return text.split(",").map((part) => readValue(name, setting, part.trim()));
  const number = (part: string) => readValue(name, setting, part.trim()) as number;
  if (range.scale !== undefined && !["linear", "log"].includes(range.scale)) {
    throw invalid(
      `search.${name} is on a scale that there is not, "${range.scale}". ${nameHint(range.scale, ["linear", "log"])}`,
    );
  }
  return {
    min: number(range.min),
    max: number(range.max),
    ...(range.scale === undefined ? {} : { scale: range.scale as "linear" | "log" }),
    ...(range.points === undefined ? {} : { points: number(range.points) }),
  };
}

function readValue(name: string, setting: Setting, text: string): SettingValue {
  if (text === "") throw invalid(`search.${name} has an empty value. Write a,b,c or, for numbers, min..max.`);
  if (isNumber(setting)) {
    const value = Number(text);
    if (Number.isNaN(value)) throw invalid(`search.${name} takes numbers, not "${text}".`);
    return value;
  }
  const isSwitch = !("choices" in setting) && !("text" in setting);
  return isSwitch && (text === "true" || text === "false") ? text === "true" : text;
}

function isNumber(setting: Setting): boolean {
  return !("choices" in setting) && !("text" in setting) && typeof setting.default !== "boolean";
}

/** Whether a grid knows all values of a dimension. */
export function isListed(dimension: Dimension): boolean {
  return isList(dimension) || dimension.points !== undefined;
}

export function isList(dimension: Dimension): dimension is readonly SettingValue[] {
  return Array.isArray(dimension);
}

/** Whether a setting takes whole numbers only. */
export function isWhole(name: string): boolean {
  const setting = trainSettings[name];
  return "integer" in setting && setting.integer === true;
}
