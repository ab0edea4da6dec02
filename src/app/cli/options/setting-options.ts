import type { Setting, SettingTable } from "../../../core/settings.js";
import type { OptionTable } from "./parse-args.js";

/** A settings table as options of a command: learningRate is --learning-rate, onlineSft is --online-sft or --online-sft=false. */
export function optionsFromSettings(table: SettingTable): OptionTable {
  return Object.fromEntries(
    Object.entries(table).map(([name, setting]) => [toOptionName(name), toOptionSpec(setting)]),
  );
}

/** The settings that were given, by their own names. */
export function explicitSettings(
  table: SettingTable,
  values: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const entries = Object.keys(table).flatMap((name) => {
    const value = values[toOptionName(name)];
    return value === undefined ? [] : [[name, value]];
  });
  return Object.fromEntries(entries) as Readonly<Record<string, unknown>>;
}

function toOptionSpec(setting: Setting): OptionTable[string] {
  const { default: defaultValue } = setting;
  const description =
    defaultValue === undefined ? setting.description : `${setting.description}; ${String(defaultValue)} by default`;
  if ("choices" in setting) return { type: "choice", choices: setting.choices, description };
  if ("text" in setting) return { type: "text", description };
  if (typeof defaultValue === "boolean") return { type: "switch", description };
  const { integer, min, above, max } = setting;
  return { type: "number", integer, min, above, max, description };
}

/** The option of a setting: "maxNewTokens" is "max-new-tokens". */
export function toOptionName(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}
