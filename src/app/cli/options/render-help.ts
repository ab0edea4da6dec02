import type { Setting, SettingTable } from "../../../core/settings.js";
import { formatCommandLine } from "../command-line.js";
import { formatOptionUsage, listsChoices, toOptionName } from "./option-names.js";

/** An argument without a name. */
export interface Positional {
  readonly name: string;
  readonly description: string;
  readonly required: boolean;
  /** Whether several may be given. */
  readonly repeated?: boolean;
}

export interface Example {
  readonly description: string;
  /** Arguments after "llamagym". */
  readonly args: string;
}

/** The content of a command's help. */
export interface HelpPage {
  readonly name: string;
  readonly description: string;
  readonly examples?: readonly Example[];
  readonly positionals?: readonly Positional[];
  readonly options: SettingTable;
  /** Whether the short help shows only the options that are common. */
  readonly showsCommonOptions?: boolean;
  /** Printed below the options. */
  readonly notes?: readonly string[];
}

const NAME_WIDTH = 32;
const MIN_WIDTH = 60;
const MAX_WIDTH = 110;

/** Renders usage, examples, and either the most used options or all of them under headings. */
export function renderHelp(page: HelpPage, showAll: boolean, columns = 80): string {
  const width = clampWidth(columns);
  const { name, description, examples = [], positionals = [], options, showsCommonOptions = false } = page;
  const commonOptions = Object.keys(options).filter((option) => !showsCommonOptions || options[option].common === true);
  const hiddenCount = Object.keys(options).length - commonOptions.length;
  const sections = showAll || hiddenCount === 0 ? groupOptions(options) : new Map([["Options", commonOptions]]);
  const usage = positionals.map(({ name: label, required, repeated = false }) => {
    const argument = repeated ? `${label}...` : label;
    return required ? argument : `[${argument}]`;
  });
  return [
    ...wrapText(description, width),
    "",
    `Usage: llamagym ${[name, ...usage].join(" ")} [options]`,
    ...formatExamples(examples),
    ...(positionals.length > 0 ? [""] : []),
    ...positionals.flatMap((positional) => formatEntry(positional.name, positional.description, width)),
    ...[...sections].flatMap(([title, names]) => [
      "",
      `${title}:`,
      ...names.flatMap((option) =>
        formatEntry(formatOptionUsage(option, options[option]), describeOption(options[option]), width),
      ),
    ]),
    ...[
      ...(page.notes ?? []),
      ...(showAll || hiddenCount === 0 ? [] : [`--help-all lists ${hiddenCount} more options.`]),
    ].flatMap((note) => ["", ...wrapText(note, width)]),
  ].join("\n");
}

export function renderEntries(
  entries: readonly (readonly [name: string, description: string])[],
  columns = 80,
): string {
  return entries.flatMap(([name, description]) => formatEntry(name, description, clampWidth(columns), 12)).join("\n");
}

const clampWidth = (columns: number) => Math.min(MAX_WIDTH, Math.max(MIN_WIDTH, columns));

/** Returns the names of all options by heading; those without one come last. */
function groupOptions(options: SettingTable): ReadonlyMap<string, readonly string[]> {
  const groups = new Map<string, string[]>();
  const isGrouped = Object.values(options).some(({ group }) => group !== undefined);
  const sorted = Object.entries(options).sort(
    ([, a], [, b]) => Number(a.group === undefined) - Number(b.group === undefined),
  );
  for (const [name, { group = isGrouped ? "Other" : "Options" }] of sorted)
    groups.set(group, [...(groups.get(group) ?? []), name]);
  return groups;
}

function formatExamples(examples: readonly Example[]): string[] {
  if (examples.length === 0) return [];
  return [
    "",
    "Examples:",
    ...examples.flatMap(({ description, args }) => [`  # ${description}`, `  ${formatCommandLine(args)}`]),
  ];
}

function describeOption(setting: Setting): string {
  const { description, default: value, defaultText, aliases = [] } = setting;
  const shownDefault =
    defaultText ?? (value === undefined || value === false || value === "" ? undefined : String(value));
  const otherNames = aliases.map((alias) =>
    typeof alias === "string" ? `--${toOptionName(alias)}` : `--${toOptionName(alias.name)} (${alias.value})`,
  );
  const isLongChoice = setting.type === "choice" && !listsChoices(setting.choices);
  const notes = [
    ...(isLongChoice ? [`One of ${setting.choices.join(", ")}.`] : []),
    ...(shownDefault === undefined || shownDefault === "false" ? [] : [`Default: ${shownDefault}.`]),
    ...(otherNames.length === 0 ? [] : [`Also: ${otherNames.join(", ")}.`]),
  ];
  return [description.endsWith(".") ? description : `${description}.`, ...notes].join(" ");
}

function formatEntry(name: string, description: string, width: number, nameWidth = NAME_WIDTH): string[] {
  const indent = " ".repeat(nameWidth);
  const lines = wrapText(description, width - nameWidth);
  const head = `  ${name}`;
  const fits = head.length < nameWidth - 1;
  const [first, ...rest] = fits ? [head.padEnd(nameWidth) + lines[0], ...lines.slice(1)] : [head, ...lines];
  return [first, ...rest.map((line) => indent + line)];
}

function wrapText(text: string, width: number): string[] {
  const lines = [""];
  for (const word of text.split(" ")) {
    const last = lines[lines.length - 1];
    if (last !== "" && last.length + 1 + word.length > width) lines.push(word);
    else lines[lines.length - 1] = last === "" ? word : `${last} ${word}`;
  }
  return lines;
}
