import type { Setting, SettingTable } from "../algorithms/shared/settings.js";
import type { OptionTable } from "./options.js";

/** A settings table as options of a command: learningRate is --learning-rate, onlineSft is --online-sft or --online-sft=false. */
export function settingOptions(table: SettingTable): OptionTable {
  return Object.fromEntries(Object.entries(table).map(([name, setting]) => [optionName(name), option(setting)]));
}

/** The settings that were given, by their own names. */
export function givenSettings(
  table: SettingTable,
  values: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const given = Object.keys(table).flatMap((name) => {
    const value = values[optionName(name)];
    return value === undefined ? [] : [[name, value]];
  });
  return Object.fromEntries(given) as Readonly<Record<string, unknown>>;
}

function option(setting: Setting): OptionTable[string] {
  const { default: usual } = setting;
  const description = usual === undefined ? setting.description : `${setting.description}; ${String(usual)} by default`;
  if ("choices" in setting) return { type: "choice", choices: setting.choices, description };
  if ("text" in setting) return { type: "text", description };
  if (typeof usual === "boolean") return { type: "switch", description };
  const { integer, min, above, max } = setting;
  return { type: "number", integer, min, above, max, description };
}

/** The option of a setting: "maxNewTokens" is "max-new-tokens". */
export function optionName(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}
