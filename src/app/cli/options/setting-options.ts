import { resolveAliases, type Setting, type SettingAlias, type SettingTable } from "../../../core/settings.js";
import { toOptionName, type OptionSpec, type OptionTable } from "./option-table.js";
import { UsageError } from "./usage-error.js";

/** How the help shows text settings. */
const TEXT_DETAILS: Readonly<Record<string, { readonly short?: string; readonly valueName: string }>> = {
  model: { short: "m", valueName: "path or id" },
  adapter: { valueName: "path or id" },
  sftWarmStart: { valueName: "file or number" },
  actionRegex: { valueName: "expression" },
  targetModules: { valueName: "names" },
  evalData: { valueName: "file" },
  wandbProject: { valueName: "name" },
};

/** Converts a settings table to options: learningRate to --learning-rate. */
export function optionsFromSettings(table: SettingTable): OptionTable {
  return Object.fromEntries(
    Object.entries(table).flatMap(([name, setting]) => [
      [toOptionName(name), toOptionSpec(name, setting)],
      ...listSwitches(setting).map(({ name: alias, value }) => [
        toOptionName(alias),
        { type: "boolean", description: `Same as --${toOptionName(name)} ${value}.` },
      ]),
    ]),
  ) as OptionTable;
}

/** Returns the names of a setting's options: its own and those of its switches. */
export function optionNames(name: string, setting: Setting): string[] {
  return [name, ...listSwitches(setting).map((alias) => alias.name)].map(toOptionName);
}

/** Returns the settings that were given as options, by the settings' names. */
export function explicitSettings(
  table: SettingTable,
  values: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const names = Object.entries(table).flatMap(([name, setting]) => [
    name,
    ...listSwitches(setting).map((alias) => alias.name),
  ]);
  const entries = names.map((name) => [name, values[toOptionName(name)]] as const);
  try {
    return resolveAliases(table, Object.fromEntries(entries.filter(([, value]) => value !== undefined)));
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

function listSwitches({ aliases = [] }: Setting): readonly Exclude<SettingAlias, string>[] {
  return aliases.filter((alias) => typeof alias !== "string");
}

function toOptionSpec(name: string, setting: Setting): OptionSpec {
  const { description, default: defaultValue } = setting;
  const aliases = setting.aliases?.filter((alias) => typeof alias === "string");
  const common = {
    description,
    ...(aliases === undefined ? {} : { aliases }),
    ...(defaultValue === undefined ? {} : { default: defaultValue }),
  };
  if ("choices" in setting) return { ...common, type: "choice", choices: setting.choices };
  if ("text" in setting) return { ...common, ...TEXT_DETAILS[name], type: "text" };
  if (typeof setting.default === "boolean") return { ...common, type: "boolean" };
  const { integer, min, above, max } = setting;
  return { ...common, type: "number", integer, min, above, max };
}
