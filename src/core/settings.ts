import { suggestNames } from "./suggest.js";
import { LlamaGymError } from "./errors.js";
import { checkNumber, type NumberRule } from "./check-number.js";

interface BaseSetting {
  /** What the setting does, in the words of the help. */
  readonly description: string;
  /** Where the default comes from. */
  readonly source: string;
}

interface NumberSetting extends NumberRule, BaseSetting {
  /** Undefined: off unless given. */
  readonly default: number | undefined;
}

interface ChoiceSetting extends BaseSetting {
  readonly choices: readonly string[];
  readonly default: string | undefined;
}

interface BooleanSetting extends BaseSetting {
  readonly default: boolean;
}

interface TextSetting extends BaseSetting {
  readonly text: true;
  readonly default: string | undefined;
}

export type Setting = NumberSetting | ChoiceSetting | BooleanSetting | TextSetting;

/** An algorithm's settings by name: defaults, ranges and what they do, in one place. */
export type SettingTable = Readonly<Record<string, Setting>>;

type SettingValue<S extends Setting> = S extends { readonly choices: readonly (infer Choice)[] }
  ? S extends { readonly default: string }
    ? Choice
    : Choice | undefined
  : S extends { readonly text: true; readonly default: infer Default }
    ? Default extends string
      ? string
      : string | undefined
    : S extends { readonly default: boolean }
      ? boolean
      : S extends { readonly default: number }
        ? number
        : number | undefined;

/** A table's values, all decided. */
export type Settings<Table extends SettingTable> = { readonly [Name in keyof Table]: SettingValue<Table[Name]> };

/**
 * Defaults with what was given in their place; `algorithm` is what messages call the table.
 * Throws INVALID_ARGUMENT for a name that the table does not have, with the nearest one it has, and for a value out of range.
 */
export function resolveSettings<const Table extends SettingTable>(
  owner: string,
  table: Table,
  given: Partial<Settings<Table>>,
): Settings<Table> {
  for (const name of Object.keys(given))
    if (!Object.hasOwn(table, name)) throw unknownSetting(owner, Object.keys(table), name);
  const values = Object.entries(table).map(([name, setting]) => {
    const value = (given as Readonly<Record<string, unknown>>)[name];
    if (value === undefined) return [name, setting.default];
    checkSetting(`${owner}'s ${name}`, value, setting);
    return [name, value];
  });
  return Object.fromEntries(values) as Settings<Table>;
}

function checkSetting(name: string, value: unknown, setting: Setting): void {
  if ("choices" in setting) {
    if (setting.choices.includes(value as string)) return;
    const choices = setting.choices.map((choice) => JSON.stringify(choice)).join(", ");
    throw invalidArgument(`${name} must be one of ${choices}, not ${JSON.stringify(value)}.`);
  }
  if ("text" in setting) {
    if (typeof value !== "string" || value === "")
      throw invalidArgument(`${name} must be a text, not ${JSON.stringify(value)}.`);
  } else if (typeof setting.default === "boolean") {
    if (typeof value !== "boolean")
      throw invalidArgument(`${name} must be true or false, not ${JSON.stringify(value)}.`);
  } else {
    checkNumber(name, value, setting);
  }
}

/** The error for a name that is none of those that there are, with the nearest one. */
export function unknownSetting(owner: string, names: readonly string[], name: string): LlamaGymError {
  return invalidArgument(`${owner} has no setting "${name}". ${suggestNames(name, names)}`);
}

/**
 * What was given, divided into the settings of one table and the others, without those that are undefined. Throws INVALID_ARGUMENT
 * for a name that `all` does not have either, with the nearest one that it has.
 */
export function splitSettings(
  owner: string,
  own: SettingTable,
  all: SettingTable,
  given: object,
): [own: Record<string, unknown>, others: Record<string, unknown>] {
  const present = Object.entries(given as Record<string, unknown>).filter(([, value]) => value !== undefined);
  const unknown = present.find(([name]) => !Object.hasOwn(all, name));
  if (unknown !== undefined) throw unknownSetting(owner, Object.keys(all), unknown[0]);
  const isOwn = ([name]: [string, unknown]) => Object.hasOwn(own, name);
  return [Object.fromEntries(present.filter(isOwn)), Object.fromEntries(present.filter((entry) => !isOwn(entry)))];
}

export function invalidArgument(message: string): LlamaGymError {
  return new LlamaGymError("INVALID_ARGUMENT", message);
}
