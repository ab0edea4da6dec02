import {
  describeExpected,
  isValidValue,
  resolveAliases,
  type GivenSettings,
  type Setting,
  type SettingTable,
} from "../../../core/settings.js";
import { findNearestName } from "../../../core/suggest.js";
import { listInstalledDevices } from "../../../engine/runtime/index.js";
import { indexOptions, toOptionName, type NamedOption } from "./option-names.js";
import { UsageError } from "./usage-error.js";

/** Names of options in other libraries. */
const FOREIGN_NAMES: Readonly<Record<string, string>> = {
  lr: "learning-rate",
  bs: "batch-size",
  "per-device-train-batch-size": "batch-size",
  "n-envs": "num-envs",
  "total-timesteps": "turns",
  epochs: "num-train-epochs",
  "lora-r": "r",
  "lora-rank": "r",
  "kl-coef": "init-kl-coef",
};

export interface ParsedArgs<Table extends SettingTable> {
  readonly values: GivenSettings<Table>;
  /** The arguments that are neither options nor their values. */
  readonly positionals: readonly string[];
}

/**
 * Parses a command's arguments. Option names may also be written in camelCase or snake_case, and by
 * their aliases.
 * @throws UsageError for an unknown option and for a missing or invalid value.
 */
export function parseCommandArgs<const Table extends SettingTable>(
  table: Table,
  args: readonly string[],
): ParsedArgs<Table> {
  const options = indexOptions(table);
  const values: Record<string, unknown> = {};
  const positionals: string[] = [];
  const queue = [...args];
  for (let arg = queue.shift(); arg !== undefined; arg = queue.shift()) {
    if (arg === "--") positionals.push(...queue.splice(0));
    else if (!isOptionLike(arg)) positionals.push(arg);
    else {
      const { option, label, value } = readOption(options, arg, queue);
      const parsed = parseValue(label, value, option.setting);
      const previous = values[option.name] as readonly string[] | undefined;
      values[option.name] = option.setting.type === "list" ? [...(previous ?? []), parsed] : parsed;
    }
  }
  try {
    const named = resolveAliases(table, values, (name) => `--${toOptionName(name)}`);
    return { values: named as GivenSettings<Table>, positionals };
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

/** @throws UsageError when a required option is missing. */
export function checkRequiredOptions(table: SettingTable, values: Readonly<Record<string, unknown>>): void {
  for (const [name, { required = false, description }] of Object.entries(table))
    if (required && values[name] === undefined)
      throw new UsageError(`--${toOptionName(name)} is missing: ${description}`);
}

/**
 * Negative numbers and "-" (standard input) are values; other arguments that begin with a dash are
 * options.
 */
function isOptionLike(arg: string): boolean {
  return /^--|^-[a-z]/i.test(arg) && Number.isNaN(Number(arg));
}

interface GivenOption {
  readonly option: NamedOption;
  readonly label: string;
  readonly value: string;
}

/**
 * Reads an option, and its value from the following arguments where it is not part of the option's.
 */
function readOption(options: ReadonlyMap<string, NamedOption>, arg: string, queue: string[]): GivenOption {
  const [, dashes, rawName, inlineValue] = /^(--?)((?<=--)[^=]+|[^=])=?([^]*)$/.exec(arg) ?? [];
  const hasInlineValue = inlineValue !== "" || arg.endsWith("=");
  const name = dashes === "--" ? toOptionName(rawName) : findShortName(options, rawName);
  const positive = options.get(name.replace(/^no-/, ""));
  if (!options.has(name) && name.startsWith("no-") && positive?.setting.type === "boolean") {
    if (hasInlineValue) throw new UsageError(`--${name} takes no value.`);
    return { option: positive, label: `--${name}`, value: "false" };
  }
  const option = options.get(name);
  if (option === undefined) throw unknownOptionError(dashes === "--" ? `--${rawName}` : arg, options);
  const label = `--${toOptionName(option.name)}`;
  if (hasInlineValue) return { option, label, value: inlineValue };
  const [next] = queue;
  if (option.setting.type === "boolean" && parseBoolean(next) === undefined) return { option, label, value: "true" };
  if (next === undefined || isOptionLike(next))
    throw new UsageError(`${label} needs a value: ${option.setting.description}`);
  return { option, label, value: queue.shift()! };
}

function findShortName(options: ReadonlyMap<string, NamedOption>, letter: string): string {
  return [...options].find(([, { setting }]) => setting.short === letter)?.[0] ?? letter;
}

function parseValue(label: string, text: string, setting: Setting): string | number | boolean {
  if (setting.type === "text" || setting.type === "list") return text;
  const value = setting.type === "number" ? parseNumber(text) : setting.type === "boolean" ? parseBoolean(text) : text;
  if (value !== undefined && isValidValue(value, setting)) return value;
  const advice = label === "--device" ? adviseDevice(text) : "";
  throw new UsageError(`${label} must be ${describeExpected(setting, String)}, got ${text}.${advice}`);
}

const parseNumber = (text: string) => (text.trim() === "" ? NaN : Number(text));
/** `wandb agent` passes Python's True and False. */
function parseBoolean(text: string | undefined): boolean | undefined {
  if (text === "true" || text === "True") return true;
  return text === "false" || text === "False" ? false : undefined;
}

/** Advises on devices that have another name here, by what is installed. */
function adviseDevice(name: string): string {
  const installed = listInstalledDevices();
  const gpu = installed.find((device) => device !== "cpu");
  if (!["mps", "metal", "gpu"].includes(name)) return ` Installed here: ${installed.join(", ")}.`;
  return gpu === undefined ? " No GPU device is installed here; use cpu." : ` Use ${gpu}, or cpu.`;
}

function unknownOptionError(label: string, options: ReadonlyMap<string, NamedOption>): UsageError {
  const known = [...options.keys()];
  const given = toOptionName(label.replace(/^-+/, ""));
  const foreign = known.find((name) => name === FOREIGN_NAMES[given]);
  const nearest = foreign ?? findNearestName(given, known);
  const advice = nearest === undefined ? "Add --help-all to list all options." : `Did you mean --${nearest}?`;
  return new UsageError(`There is no option ${label}. ${advice}`);
}
