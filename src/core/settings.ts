import { suggestNames } from "./suggest.js";
import { invalidArgument, type LlamaGymError } from "./errors.js";
import { checkNumber, type NumberRule } from "./check-number.js";

interface BaseSetting {
  /** What the setting does, in the words of the help. */
  readonly description: string;
  /** Where the default comes from. */
  readonly source: string;
  /** Other names that are accepted, in camelCase. */
  readonly aliases?: readonly SettingAlias[];
}

/** Another name of a setting, or a switch that stands for one of its values. */
export type SettingAlias = string | { readonly name: string; readonly value: string | number };

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

/** One row of a settings table. */
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

/** Declares a table of settings. It drives types, validation, command-line options, help and docs. */
export function defineSettings<const Table extends SettingTable>(table: Table): Table {
  return table;
}

type OptionalDefault<S extends Setting> = Omit<S, "default"> & { readonly default?: S["default"] };
type WithDefault<S> = S extends { readonly default: unknown } ? S : S & { readonly default: undefined };

/** Declares a number; it has no default unless one is given. */
export function number<const S extends OptionalDefault<NumberSetting>>(setting: S): WithDefault<S> {
  return { default: undefined, ...setting } as WithDefault<S>;
}

/** Declares a choice between strings; it has no default unless one is given. */
export function choice<const S extends OptionalDefault<ChoiceSetting>>(setting: S): WithDefault<S> {
  return { default: undefined, ...setting } as WithDefault<S>;
}

/** Declares a boolean. */
export function boolean<const S extends BooleanSetting>(setting: S): S {
  return setting;
}

/** Declares a non-empty string; it has no default unless one is given. */
export function text<const S extends Omit<OptionalDefault<TextSetting>, "text">>(
  setting: S,
): WithDefault<S> & { readonly text: true } {
  return { default: undefined, ...setting, text: true } as WithDefault<S> & { readonly text: true };
}

/** A table's values, all decided. */
export type Settings<Table extends SettingTable> = { readonly [Name in keyof Table]: SettingValue<Table[Name]> };

type AliasName<S extends Setting> = S extends { readonly aliases: readonly (infer Alias)[] }
  ? Alias extends { readonly name: infer Name extends string }
    ? Name
    : Alias
  : never;

/** The aliases of a table's settings with the settings' values; a switch takes a boolean. */
export type AliasOptions<Table extends SettingTable> = {
  readonly [Name in keyof Table as AliasName<Table[Name]> & string]?: SettingValue<Table[Name]> | boolean;
};

/** A table's values as a caller gives them, by the settings' names or their aliases. */
export type SettingOptions<Table extends SettingTable> = Partial<Settings<Table>> & AliasOptions<Table>;

/**
 * Defaults with what was given in their place; `algorithm` is what messages call the table.
 * Throws INVALID_ARGUMENT for a name that the table does not have, with the nearest one it has, and for a value out of range.
 */
export function resolveSettings<const Table extends SettingTable>(
  owner: string,
  table: Table,
  given: SettingOptions<Table>,
): Settings<Table> {
  const named = resolveAliases(table, given);
  for (const name of Object.keys(named))
    if (!Object.hasOwn(table, name)) throw unknownSetting(owner, Object.keys(table), name);
  const values = Object.entries(table).map(([name, setting]) => {
    const value = named[name];
    if (value === undefined) return [name, setting.default];
    checkSetting(`${owner}'s ${name}`, value, setting);
    return [name, value];
  });
  return Object.fromEntries(values) as Settings<Table>;
}

/** Replaces aliases by the settings' names. Throws INVALID_ARGUMENT when a setting is given under two names. */
export function resolveAliases(table: SettingTable, given: object): Record<string, unknown> {
  const values: Record<string, unknown> = { ...given };
  for (const [name, { aliases = [] }] of Object.entries(table)) {
    for (const alias of aliases) {
      const aliasName = typeof alias === "string" ? alias : alias.name;
      const { [aliasName]: aliasValue } = values;
      delete values[aliasName];
      const value = typeof alias === "string" ? aliasValue : aliasValue === true ? alias.value : undefined;
      if (value === undefined) continue;
      if (values[name] !== undefined && values[name] !== value)
        throw invalidArgument(`\`${aliasName}\` sets \`${name}\`, which is given too. Leave one of them out.`);
      values[name] = value;
    }
  }
  return values;
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
  const present = Object.entries(resolveAliases(all, given)).filter(([, value]) => value !== undefined);
  const unknown = present.find(([name]) => !Object.hasOwn(all, name));
  if (unknown !== undefined) throw unknownSetting(owner, Object.keys(all), unknown[0]);
  const isOwn = ([name]: [string, unknown]) => Object.hasOwn(own, name);
  return [Object.fromEntries(present.filter(isOwn)), Object.fromEntries(present.filter((entry) => !isOwn(entry)))];
}
