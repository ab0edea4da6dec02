import { suggestNames } from "../../core/suggest.js";
import {
  invalidArgument,
  resolveSettings,
  unknownSetting,
  type Setting,
  type SettingTable,
  type Settings,
} from "../../core/settings.js";
import { trainSettings } from "../runs/run-settings.js";

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
const FIXED_SETTINGS: Readonly<Record<string, string>> = {
  seed: "every trial is trained with each of the sweep's seeds",
  evalEpisodes: "it changes nothing of the training",
};

/** 1e-4..1e-2, 1e-4..1e-2:log, 1e-4..1e-2:log:5 */
const RANGE_PATTERN = /^(?<min>[^:]+?)\.\.(?<max>[^:]+)(?::(?<scale>[a-z]+))?(?::(?<points>[^:]+))?$/;

/**
 * A search as objects and lists, names as in the table of settings. A text is the short form: "0,0.01,0.1", "1e-4..1e-2:log",
 * "1e-4..1e-2:log:5". Throws INVALID_ARGUMENT for an unknown setting, with the nearest known one, and for values that it cannot have.
 */
export function resolveSearchSpace(given: Readonly<Record<string, Dimension | string>>): SearchSpace {
  const entries = Object.entries(normalizeKeys("search", given)).map(([name, dimension]) => {
    const setting = findSearchableSetting(name);
    const parsed = typeof dimension === "string" ? parseShortForm(name, setting, dimension) : dimension;
    return [name, resolveDimension(name, setting, parsed)] as const;
  });
  if (entries.length === 0)
    throw invalidArgument("A sweep needs something to search: settings with the values to try.");
  return Object.fromEntries(entries);
}

/** An object's keys as settings are called: max-new-tokens and max_new_tokens are maxNewTokens. */
export function normalizeKeys<Value>(where: string, given: Readonly<Record<string, Value>>): Record<string, Value> {
  const result: Record<string, Value> = {};
  for (const [key, value] of Object.entries(given)) {
    const name = key.replace(/[-_]([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
    if (Object.hasOwn(result, name))
      throw invalidArgument(`${name} is twice in ${where}, in two spellings. Leave one out.`);
    result[name] = value;
  }
  return result;
}

function findSearchableSetting(name: string): Setting {
  if (Object.hasOwn(FIXED_SETTINGS, name))
    throw invalidArgument(`${name} cannot be searched: ${FIXED_SETTINGS[name]}.`);
  if (!Object.hasOwn(trainSettings, name)) throw unknownSetting("A run", Object.keys(trainSettings), name);
  return trainSettings[name];
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
  if (!isNumeric(setting)) throw invalidArgument(`${name} is no number, so it has no range: list the values to try.`);
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
  // Null is what a number that JSON cannot hold becomes.
  if (value === undefined || value === null) throw invalidArgument(`search.${name} has a value that is missing.`);
  resolveSettings("A run", { [name]: setting }, { [name]: value });
}

/** Throws INVALID_ARGUMENT for a text that cannot be read. */
function parseShortForm(name: string, setting: Setting, text: string): Dimension {
  const range = isNumeric(setting) ? RANGE_PATTERN.exec(text)?.groups : undefined;
  if (range === undefined) return text.split(",").map((part) => parseValue(name, setting, part.trim()));
  const parseNumber = (part: string) => parseValue(name, setting, part.trim()) as number;
  if (range.scale !== undefined && !["linear", "log"].includes(range.scale)) {
    throw invalidArgument(
      `search.${name} is on a scale that there is not, "${range.scale}". ${suggestNames(range.scale, ["linear", "log"])}`,
    );
  }
  return {
    min: parseNumber(range.min),
    max: parseNumber(range.max),
    ...(range.scale === undefined ? {} : { scale: range.scale as "linear" | "log" }),
    ...(range.points === undefined ? {} : { points: parseNumber(range.points) }),
  };
}

function parseValue(name: string, setting: Setting, text: string): SettingValue {
  if (text === "") throw invalidArgument(`search.${name} has an empty value. Write a,b,c or, for numbers, min..max.`);
  if (isNumeric(setting)) {
    const value = Number(text);
    if (Number.isNaN(value)) throw invalidArgument(`search.${name} takes numbers, not "${text}".`);
    return value;
  }
  const isBoolean = !("choices" in setting) && !("text" in setting);
  return isBoolean && (text === "true" || text === "false") ? text === "true" : text;
}

function isNumeric(setting: Setting): boolean {
  return !("choices" in setting) && !("text" in setting) && typeof setting.default !== "boolean";
}

/** Whether a grid knows all values of a dimension. */
export function isEnumerable(dimension: Dimension): boolean {
  return isList(dimension) || dimension.points !== undefined;
}

export function isList(dimension: Dimension): dimension is readonly SettingValue[] {
  return Array.isArray(dimension);
}

/** Whether a setting takes whole numbers only. */
export function isInteger(name: string): boolean {
  const setting = trainSettings[name];
  return "integer" in setting && setting.integer === true;
}
