import { boolean, type Setting, type SettingTable } from "../../../core/settings.js";

/** An option of a command: a setting under its name or an alias. */
export interface NamedOption {
  /** Name of the setting, or of a switch. */
  readonly name: string;
  readonly setting: Setting;
}

/** Returns the options of a table by name and alias, without dashes; a switch is a boolean. */
export function indexOptions(table: SettingTable): ReadonlyMap<string, NamedOption> {
  const options = Object.entries(table).flatMap(([name, setting]) => [
    [toOptionName(name), { name, setting }] as const,
    ...(setting.aliases ?? []).map((alias): [string, NamedOption] =>
      typeof alias === "string"
        ? [toOptionName(alias), { name, setting }]
        : [toOptionName(alias.name), { name: alias.name, setting: boolean({ description: setting.description }) }],
    ),
  ]);
  return new Map<string, NamedOption>(options);
}

/**
 * Converts a setting's name to an option's: "topP" and "top_p" to "top-p", "loadIn8bit" to
 * "load-in-8bit".
 */
export function toOptionName(name: string): string {
  return name.replaceAll("_", "-").replace(/[A-Z]|(?<=[a-z])\d(?=bit)/g, (letter) => `-${letter.toLowerCase()}`);
}

const MAX_CHOICES_LENGTH = 60;

/** Returns an option as the help shows it: "-o, --option <name=value>". */
export function formatOptionUsage(name: string, setting: Setting): string {
  const option = toOptionName(name);
  const short = setting.short === undefined ? "" : `-${setting.short}, `;
  if (setting.type === "boolean") return `${short}--${setting.default ? "[no-]" : ""}${option}`;
  return `${short}--${option} <${formatValueName(setting)}>`;
}

/** Whether the usage of a choice lists its values; long lists follow the description. */
export function listsChoices(choices: readonly string[]): boolean {
  return choices.join("|").length <= MAX_CHOICES_LENGTH;
}

function formatValueName(setting: Setting): string {
  if (setting.type === "choice")
    return listsChoices(setting.choices) ? setting.choices.join("|") : (setting.valueName ?? "name");
  if (setting.type === "number") return setting.integer === true ? "integer" : "number";
  return setting.valueName ?? "text";
}
