import type { Setting, SettingTable } from "../../../core/settings.js";
import { toOptionName, type OptionSpec, type OptionTable } from "./option-table.js";

/** Converts a settings table to options: learningRate to --learning-rate. */
export function optionsFromSettings(table: SettingTable): OptionTable {
  return Object.fromEntries(
    Object.entries(table).map(([name, setting]) => [toOptionName(name), toOptionSpec(setting)]),
  );
}

/** Returns the settings that were given as options, by the settings' names. */
export function explicitSettings(
  table: SettingTable,
  values: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const entries = Object.keys(table).map((name) => [name, values[toOptionName(name)]] as const);
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
}

function toOptionSpec(setting: Setting): OptionSpec {
  const { description } = setting;
  const common = setting.default === undefined ? { description } : { description, default: setting.default };
  if ("choices" in setting) return { ...common, type: "choice", choices: setting.choices };
  if ("text" in setting) return { ...common, type: "text" };
  if (typeof setting.default === "boolean") return { ...common, type: "boolean" };
  const { integer, min, above, max } = setting;
  return { ...common, type: "number", integer, min, above, max };
}
