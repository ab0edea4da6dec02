import { formatOptionUsage, type OptionTable } from "./parse-args.js";

/** What a command takes besides options, in order. */
export interface Positional {
  readonly name: string;
  readonly description: string;
  readonly required: boolean;
}

/** Option names under the headings that the help has for them, in order. */
export type OptionGroups = Readonly<Record<string, readonly string[]>>;

export interface HelpPage {
  readonly name: string;
  readonly description: string;
  readonly positionals: readonly Positional[];
  readonly options: OptionTable;
  readonly groups: OptionGroups;
}

/** Columns of an option's name; a longer one has its description in the next line. */
const NAME_WIDTH = 32;
const MIN_WIDTH = 60;
const MAX_WIDTH = 110;

/** The help of a command with many options, under headings; options that no heading names come last. */
export function renderHelp({ name, description, positionals, options, groups }: HelpPage, columns = 80): string {
  const width = Math.min(MAX_WIDTH, Math.max(MIN_WIDTH, columns));
  const grouped = new Set(Object.values(groups).flat());
  const others = Object.keys(options).filter((option) => !grouped.has(option));
  const sections = [...Object.entries(groups), ...(others.length > 0 ? ([["Other", others]] as const) : [])];
  const usage = positionals.map((positional) => (positional.required ? positional.name : `[${positional.name}]`));
  return [
    `llamagym ${[name, ...usage].join(" ")} [options]`,
    "",
    ...wrapText(description, width),
    "",
    ...positionals.flatMap((positional) => formatEntry(positional.name, positional.description, width)),
    ...sections.flatMap(([title, names]) => [
      "",
      `${title}:`,
      ...names.flatMap((option) =>
        formatEntry(formatOptionUsage(option, options[option]), options[option].description, width),
      ),
    ]),
  ].join("\n");
}

function formatEntry(name: string, description: string, width: number): string[] {
  const indent = " ".repeat(NAME_WIDTH);
  const lines = wrapText(description, width - NAME_WIDTH);
  const head = `  ${name}`;
  const isShort = head.length < NAME_WIDTH - 1;
  const [first, ...rest] = isShort ? [head.padEnd(NAME_WIDTH) + lines[0], ...lines.slice(1)] : [head, ...lines];
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
