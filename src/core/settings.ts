import { invalidArgument, type LlamaGymError } from "./errors.js";
import { describeValue } from "./format.js";
import { isJsonObject } from "./json.js";
import { suggestNames } from "./suggest.js";

/**
 * Another name of a setting, or a switch that sets one of its values; turned off, it sets `off`, if
 * there is one.
 */
export type SettingAlias =
  | string
  | { readonly name: string; readonly value: string | number; readonly off?: string | number };

interface BaseSetting {
  readonly description: string;
  /** Where the default comes from, unless it was chosen for llamagym. */
  readonly source?: string;
  /** Other names that are accepted, in camelCase. */
  readonly aliases?: readonly SettingAlias[];
  /** Heading in the help of a command. */
  readonly group?: string;
  /** The default as the help shows it, where it depends on other settings. */
  readonly defaultText?: string;
  /** One-letter name on the command line. */
  readonly short?: string;
  /** Placeholder of the value in the help. */
  readonly valueName?: string;
  /** Whether a command fails without it. */
  readonly required?: boolean;
  /** Part of a program that the setting configures, by which `selectScope` finds it. */
  readonly scope?: string;
  /**
   * When a run may change it: only when it is resumed, or also between two updates. Default: never.
   */
  readonly changeable?: "resume" | "live";
  /** Whether the short help of a command shows it. */
  readonly common?: boolean;
}

interface NumberSetting extends BaseSetting {
  readonly type: "number";
  /** Undefined: off unless given. */
  readonly default: number | undefined;
  readonly integer?: boolean;
  readonly min?: number;
  /** Exclusive lower bound. */
  readonly above?: number;
  readonly max?: number;
  /** Whether 0 is valid as well, below the range. */
  readonly allowsZero?: boolean;
  /** Whether Infinity is valid as well; JSON cannot store it. */
  readonly allowsInfinity?: boolean;
}

interface ChoiceSetting extends BaseSetting {
  readonly type: "choice";
  readonly choices: readonly string[];
  readonly default: string | undefined;
}

interface BooleanSetting extends BaseSetting {
  readonly type: "boolean";
  readonly default: boolean;
}

interface TextSetting extends BaseSetting {
  readonly type: "text";
  readonly default: string | undefined;
  readonly allowsEmpty?: boolean;
}

/** A list of strings; on the command line, the option is repeated. */
interface ListSetting extends BaseSetting {
  readonly type: "list";
  readonly default: undefined;
}

/** One row of a settings table. */
export type Setting = NumberSetting | ChoiceSetting | BooleanSetting | TextSetting | ListSetting;

/** Settings by name. A table drives types, validation, command-line options, help and docs. */
export type SettingTable = Readonly<Record<string, Setting>>;

type GivenValue<S extends Setting> = S extends { readonly type: "choice"; readonly choices: readonly (infer Choice)[] }
  ? Choice
  : { number: number; boolean: boolean; text: string; list: readonly string[]; choice: string }[S["type"]];

type SettingValue<S extends Setting> = S extends { readonly default: undefined }
  ? GivenValue<S> | undefined
  : GivenValue<S>;

/** Properties that settings of a table share, unless they have their own. */
type SharedProperties = Pick<BaseSetting, "group" | "scope" | "source" | "changeable" | "common">;

/**
 * Declares a table of settings. A comment on a setting is the documentation of its property in
 * types that are derived from the table, such as `Settings<typeof table>`.
 */
export function defineSettings<const Table extends SettingTable>(table: Table, shared: SharedProperties = {}): Table {
  const entries = Object.entries(table).map(([name, setting]) => [name, { ...shared, ...setting }]);
  return Object.fromEntries(entries) as Table;
}

type Declaration<S extends Setting> = Omit<S, "type" | "default"> & Partial<Pick<S, "default">>;
type Declared<Type extends Setting["type"], S> = (S extends { readonly default: unknown }
  ? S
  : S & { readonly default: Type extends "boolean" ? boolean : undefined }) & { readonly type: Type };

/** Declares a number; without a default it is off unless given. */
export function number<const S extends Declaration<NumberSetting>>(setting: S): Declared<"number", S> {
  return { default: undefined, ...setting, type: "number" } as Declared<"number", S>;
}

/** Declares an integer; without a default it is off unless given. */
export function integer<const S extends Declaration<NumberSetting>>(setting: S): Declared<"number", S> {
  return number({ ...setting, integer: true });
}

/** Declares a choice between strings; without a default it is off unless given. */
export function choice<const S extends Declaration<ChoiceSetting>>(setting: S): Declared<"choice", S> {
  return { default: undefined, ...setting, type: "choice" } as Declared<"choice", S>;
}

/** Declares a boolean, by default false. */
export function boolean<const S extends Declaration<BooleanSetting>>(setting: S): Declared<"boolean", S> {
  return { default: false, ...setting, type: "boolean" } as Declared<"boolean", S>;
}

/** Declares a non-empty string; without a default it is off unless given. */
export function text<const S extends Declaration<TextSetting>>(setting: S): Declared<"text", S> {
  return { default: undefined, ...setting, type: "text" } as Declared<"text", S>;
}

/** Declares a list of strings without a default. */
export function list<const S extends Declaration<ListSetting>>(setting: S): Declared<"list", S> {
  return { default: undefined, ...setting, type: "list" } as Declared<"list", S>;
}

/** The resolved values of a table. */
export type Settings<Table extends SettingTable> = { readonly [Name in keyof Table]: SettingValue<Table[Name]> };

/** The values of a table as given, without defaults; those that are required are present. */
export type GivenSettings<Table extends SettingTable> = {
  readonly [Name in keyof Table]: Table[Name] extends { readonly required: true }
    ? GivenValue<Table[Name]>
    : GivenValue<Table[Name]> | undefined;
};

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
 * Validates given values and fills in defaults; `owner` names the table in messages.
 * @throws INVALID_ARGUMENT for an unknown name, suggesting the nearest one, and for an invalid
 * value.
 */
export function resolveSettings<const Table extends SettingTable>(
  owner: string,
  table: Table,
  given: SettingOptions<Table>,
): Settings<Table> {
  const named = resolveAliases(table, given);
  const unknown = Object.keys(named).find((name) => !Object.hasOwn(table, name));
  if (unknown !== undefined) throw unknownSetting(owner, Object.keys(table), unknown);
  checkSettings(table, named);
  const values = Object.entries(table).map(([name, setting]) => [name, named[name] ?? setting.default]);
  return Object.fromEntries(values) as Settings<Table>;
}

/**
 * Replaces aliases by the settings' names.
 * @throws INVALID_ARGUMENT when a setting is given under two names, and for a switch that is not
 * true or false.
 */
export function resolveAliases(
  table: SettingTable,
  given: object,
  formatName: (name: string) => string = quoteName,
): Record<string, unknown> {
  const values: Record<string, unknown> = { ...given };
  for (const [name, { aliases = [] }] of Object.entries(table)) {
    for (const alias of aliases) {
      const aliasName = typeof alias === "string" ? alias : alias.name;
      const { [aliasName]: aliasValue } = values;
      delete values[aliasName];
      if (typeof alias !== "string" && aliasValue !== undefined && typeof aliasValue !== "boolean")
        throw invalidArgument(
          `${formatName(aliasName)} must be true or false, got ${describeValue(aliasValue)}. Set ${formatName(name)} to choose the value.`,
        );
      const value =
        typeof alias === "string"
          ? aliasValue
          : aliasValue === undefined
            ? undefined
            : aliasValue === true
              ? alias.value
              : alias.off;
      if (value === undefined) continue;
      if (values[name] !== undefined && values[name] !== value)
        throw invalidArgument(
          `${formatName(aliasName)} sets ${formatName(name)}, which is also given. Remove one of them.`,
        );
      values[name] = value;
    }
  }
  return values;
}

/**
 * Validates the values of a table that are given and ignores other properties; `prefix` precedes
 * names in messages.
 * @throws INVALID_ARGUMENT
 */
export function checkSettings(table: SettingTable, given: object, prefix = ""): void {
  const values = given as Readonly<Record<string, unknown>>;
  for (const [name, setting] of Object.entries(table))
    if (values[name] !== undefined) checkSetting(quoteName(`${prefix}${name}`), values[name], setting);
}

const quoteName = (name: string) => `\`${name}\``;

/** @throws INVALID_ARGUMENT for an invalid value; `label` names the setting in the message. */
export function checkSetting(label: string, value: unknown, setting: Setting): void {
  if (!isValidValue(value, setting))
    throw invalidArgument(`${label} must be ${describeExpected(setting)}, got ${describeValue(value)}.`);
}

/** Whether a setting accepts a value. */
export function isValidValue(value: unknown, setting: Setting): boolean {
  if (setting.type === "number") return isInRange(value, setting);
  if (setting.type === "choice") return setting.choices.includes(value as string);
  if (setting.type === "boolean") return typeof value === "boolean";
  const isText = (item: unknown) => typeof item === "string" && item !== "";
  if (setting.type === "list") return Array.isArray(value) && value.every(isText);
  return isText(value) || (setting.allowsEmpty === true && value === "");
}

function isInRange(value: unknown, range: NumberSetting): boolean {
  const { integer: isInteger = false, min = -Infinity, above = -Infinity, max = Infinity } = range;
  if (range.allowsZero === true && value === 0) return true;
  if (range.allowsInfinity === true && value === Infinity) return true;
  const isNumber = isInteger ? Number.isSafeInteger(value) : Number.isFinite(value);
  return isNumber && (value as number) >= min && (value as number) > above && (value as number) <= max;
}

/**
 * Describes valid values: "an integer >= 1", "a number > 0 and <= 1", "true or false", "cpu or
 * webgpu".
 */
export function describeExpected(setting: Setting, formatChoice: (value: string) => string = JSON.stringify): string {
  if (setting.type === "choice") return joinAlternatives(setting.choices.map((value) => formatChoice(value)));
  if (setting.type === "text") return setting.allowsEmpty === true ? "a string" : "a non-empty string";
  if (setting.type !== "number") return setting.type === "boolean" ? "true or false" : "a list of non-empty strings";
  const { integer: isInteger = false, min, above, max, allowsZero = false, allowsInfinity = false } = setting;
  const bounds = Object.entries({ ">=": min, ">": above, "<=": max }).filter(([, bound]) => bound !== undefined);
  const range = bounds.map(([operator, bound]) => ` ${operator} ${bound}`).join(" and");
  return `${allowsZero ? "0 or " : ""}${isInteger ? "an integer" : "a number"}${range}${allowsInfinity ? " or Infinity" : ""}`;
}

/** Joins alternatives as "a, b or c". */
function joinAlternatives(items: readonly string[]): string {
  return items.length < 2 ? items.join("") : `${items.slice(0, -1).join(", ")} or ${items[items.length - 1]}`;
}

/** Creates the error for an unknown name, which suggests the nearest known one. */
export function unknownSetting(owner: string, names: readonly string[], name: string): LlamaGymError {
  return invalidArgument(`${owner} has no setting "${name}". ${suggestNames(name, names)}`);
}

/**
 * Splits given values into those of one table and the others, without undefined ones.
 * @throws INVALID_ARGUMENT for a name that is not in `all`, suggesting the nearest one.
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

/** What an option may be, in words and as a test. */
export interface ValueKind {
  readonly expected: string;
  readonly isOf: (value: unknown) => boolean;
}

const VALUE_KINDS = new Map<unknown, ValueKind>([
  [Function, { expected: "a function", isOf: (value) => typeof value === "function" }],
  [String, { expected: "a non-empty string", isOf: (value) => typeof value === "string" && value !== "" }],
  [Boolean, { expected: "true or false", isOf: (value) => typeof value === "boolean" }],
  [Number, { expected: "a number", isOf: Number.isFinite }],
  [Array, { expected: "a list", isOf: Array.isArray }],
  [Object, { expected: "an object", isOf: isJsonObject }],
  [Date, { expected: "a valid Date", isOf: (value) => value instanceof Date && !Number.isNaN(value.getTime()) }],
  [
    AbortSignal,
    {
      expected: "an AbortSignal, such as the property `signal` of an AbortController",
      isOf: (value) => isJsonObject(value) && typeof value.aborted === "boolean",
    },
  ],
]);

/** The kind of an integer of at least `min`. */
export function integerFrom(min: number): ValueKind {
  return {
    expected: `an integer >= ${min}`,
    isOf: (value) => Number.isSafeInteger(value) && (value as number) >= min,
  };
}

/** The kind of a number of things that are needed. */
export const COUNT = integerFrom(1);

/** The kind of a time limit; Infinity is none. */
export const TIME_LIMIT: ValueKind = {
  expected: "a number > 0",
  isOf: (value) => typeof value === "number" && value > 0,
};

/** The kind of a probability. */
export const PROBABILITY: ValueKind = {
  expected: "a number between 0 and 1",
  isOf: (value) => typeof value === "number" && value >= 0 && value <= 1,
};

/** The kind of an option with these values. */
export function oneOf(...values: readonly (string | number)[]): ValueKind {
  return {
    expected: joinAlternatives(values.map((value) => JSON.stringify(value))),
    isOf: (value) => values.includes(value as string),
  };
}

/** Kinds of options that `checkOptions` checks: a type or a test. */
type OptionKind =
  | FunctionConstructor
  | StringConstructor
  | BooleanConstructor
  | NumberConstructor
  | ArrayConstructor
  | ObjectConstructor
  | DateConstructor
  | typeof AbortSignal
  | ValueKind;

/**
 * The names of options that are not settings, to be listed completely: their kinds, or true for
 * those that are checked elsewhere.
 */
export type OtherOptions<Options, Table> = Readonly<Record<Exclude<keyof Options, keyof Table>, true | OptionKind>>;

/** The names of all options of a function; a table of settings or defaults has them as well. */
export type OptionNames<Options> = Readonly<Record<keyof Options, unknown>>;

/**
 * Checks that options are an object with known names, also where JavaScript calls; `owner` is such
 * as "getPeftModel". Names with undefined are not given. The value of a name may be its kind:
 * Function, String (not empty) or AbortSignal.
 * @throws INVALID_ARGUMENT for an unknown name, suggesting the nearest one; `hint` ends the message;
 * and for a value of another kind.
 */
export function checkOptions<Options>(
  owner: string,
  given: Options | undefined,
  names: OptionNames<Options>,
  hint?: string,
): void {
  if (given === undefined) return;
  if (typeof given !== "object" || given === null)
    throw invalidArgument(`${owner} takes an object of options, got ${describeValue(given)}.`);
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined) continue;
    if (Object.hasOwn(names, name)) {
      checkKind(name, value, (names as Readonly<Record<string, unknown>>)[name]);
      continue;
    }
    const end = hint === undefined ? "" : ` ${hint}`;
    throw invalidArgument(`${owner} has no option "${name}". ${suggestNames(name, Object.keys(names))}${end}`);
  }
}

/**
 * As `checkOptions`, and the `required` options, all unless they are listed, must be given. @throws
 * INVALID_ARGUMENT.
 */
export function requireOptions<Options>(
  owner: string,
  given: Options,
  names: OptionNames<Options>,
  required: readonly (keyof Options)[] = Object.keys(names) as (keyof Options)[],
): void {
  checkOptions(owner, given, names);
  const missing = required.find((name) => (given as Options | undefined)?.[name] === undefined);
  if (missing !== undefined) throw invalidArgument(`${owner} needs the option \`${String(missing)}\`.`);
}

/** Checks a value whose kind a table has; its settings and defaults are no kinds. */
function checkKind(name: string, value: unknown, kind: unknown): void {
  const { expected, isOf } = VALUE_KINDS.get(kind) ?? ((isJsonObject(kind) ? kind : {}) as Partial<ValueKind>);
  if (isOf?.(value) === false)
    throw invalidArgument(`${quoteName(name)} must be ${expected}, got ${describeValue(value)}.`);
}

/** Returns the values that are settings of a table, without those that are undefined. */
export function selectSettings<const Table extends object, Values extends object>(
  table: Table,
  values: Values,
): Pick<Values, keyof Table & keyof Values> {
  const entries = Object.entries(values).filter(([name, value]) => Object.hasOwn(table, name) && value !== undefined);
  return Object.fromEntries(entries) as Pick<Values, keyof Table & keyof Values>;
}

/** Returns the settings of a table that belong to these parts of a program. */
export function selectScope(table: SettingTable, ...scopes: readonly string[]): SettingTable {
  return filterSettings(table, ({ scope }) => scope !== undefined && scopes.includes(scope));
}

/** Returns the settings of a table that meet a condition. */
export function filterSettings(
  table: SettingTable,
  condition: (setting: Setting, name: string) => boolean,
): SettingTable {
  return Object.fromEntries(Object.entries(table).filter(([name, setting]) => condition(setting, name)));
}
