import { formatCommandLine } from "../command-line.js";
import { formatOptionUsage, toOptionName, type OptionSpec, type OptionTable } from "./option-table.js";

/** An argument without a name. */
export interface Positional {
  readonly name: string;
  readonly description: string;
  readonly required: boolean;
}

/** Names of options under the headings that the full help shows them under. */
export type OptionGroups = Readonly<Record<string, readonly string[]>>;

export interface Example {
  readonly description: string;
  /** Arguments after "llamagym". */
  readonly args: string;
}

/** The content of a command's help. */
export interface HelpPage {
  readonly name: string;
  readonly description: string;
  readonly examples: readonly Example[];
  readonly positionals: readonly Positional[];
  readonly options: OptionTable;
  readonly groups: OptionGroups;
  /** Names of the options that the short help shows; all by default. */
  readonly commonOptions?: readonly string[];
  /** Printed below the options. */
  readonly notes?: readonly string[];
}

const NAME_WIDTH = 32;
const MIN_WIDTH = 60;
const MAX_WIDTH = 110;

/** Renders usage, examples, and either the most used options or all of them under headings. */
export function renderHelp(page: HelpPage, showAll: boolean, columns = 80): string {
  const width = clampWidth(columns);
  const { name, description, positionals, options, commonOptions = Object.keys(options) } = page;
  const hiddenCount = Object.keys(options).length - commonOptions.length;
  const sections = showAll || hiddenCount === 0 ? listSections(page) : ([["Options", commonOptions]] as const);
  const usage = positionals.map((positional) => (positional.required ? positional.name : `[${positional.name}]`));
  return [
    ...wrapText(description, width),
    "",
    `Usage: llamagym ${[name, ...usage].join(" ")} [options]`,
    ...formatExamples(page.examples),
    ...(positionals.length > 0 ? [""] : []),
    ...positionals.flatMap((positional) => formatEntry(positional.name, positional.description, width)),
    ...sections.flatMap(([title, names]) => [
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

/** Renders a list of names and descriptions. */
export function renderEntries(
  entries: readonly (readonly [name: string, description: string])[],
  columns = 80,
): string {
  return entries.flatMap(([name, description]) => formatEntry(name, description, clampWidth(columns), 12)).join("\n");
}

const clampWidth = (columns: number) => Math.min(MAX_WIDTH, Math.max(MIN_WIDTH, columns));

/** Returns all options by heading; options of no group come last. */
function listSections({ options, groups }: HelpPage): readonly (readonly [title: string, names: readonly string[]])[] {
  const grouped = new Set(Object.values(groups).flat());
  const others = Object.keys(options).filter((option) => !grouped.has(option));
  const title = grouped.size === 0 ? "Options" : "Other";
  return [...Object.entries(groups), ...(others.length > 0 ? ([[title, others]] as const) : [])];
}

function formatExamples(examples: readonly Example[]): string[] {
  if (examples.length === 0) return [];
  return [
    "",
    "Examples:",
    ...examples.flatMap(({ description, args }) => [`  # ${description}`, `  ${formatCommandLine(args)}`]),
  ];
}

function describeOption({ description, default: defaultValue, aliases = [] }: OptionSpec): string {
  const notes = [
    ...(defaultValue === undefined || String(defaultValue) === "false" ? [] : [`Default: ${defaultValue}.`]),
    ...(aliases.length === 0 ? [] : [`Also: ${aliases.map((alias) => `--${toOptionName(alias)}`).join(", ")}.`]),
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
