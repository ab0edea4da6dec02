import type { NumberRule } from "../../../core/check-number.js";

interface BaseOption {
  readonly description: string;
  /** One letter. */
  readonly short?: string;
  /** Other names that are accepted. */
  readonly aliases?: readonly string[];
  /** The default as the help shows it. */
  readonly default?: string | number | boolean;
}

interface TextOption extends BaseOption {
  readonly type: "text";
  /** Placeholder of the value in the help: --model <path or id>. */
  readonly valueName?: string;
  readonly required?: true;
  /** The option may be repeated; its value is a list. */
  readonly repeated?: true;
}

interface ChoiceOption extends BaseOption {
  readonly type: "choice";
  readonly choices: readonly string[];
}

interface NumberOption extends BaseOption, Omit<NumberRule, "description"> {
  readonly type: "number";
}

/** Given alone it is true; true or false may follow, and --no-NAME is false. */
interface BooleanOption extends BaseOption {
  readonly type: "boolean";
}

export type OptionSpec = TextOption | ChoiceOption | NumberOption | BooleanOption;

/** The options of a command by name, without dashes. Drives parsing, validation and help. */
export type OptionTable = Readonly<Record<string, OptionSpec>>;

type OptionValue<Spec extends OptionSpec> = Spec extends { readonly type: "boolean" }
  ? boolean | undefined
  : Spec extends { readonly type: "number" }
    ? number | undefined
    : Spec extends { readonly type: "choice"; readonly choices: readonly (infer Choice)[] }
      ? Choice | undefined
      : Spec extends { readonly repeated: true }
        ? string[] | undefined
        : Spec extends { readonly required: true }
          ? string
          : string | undefined;

/** The values of a table's options; undefined where an option was not given. */
export type OptionValues<Table extends OptionTable> = { readonly [Name in keyof Table]: OptionValue<Table[Name]> };

/** Converts a setting's name to an option's: "topP" and "top_p" to "top-p", "loadIn8bit" to "load-in-8bit". */
export function toOptionName(name: string): string {
  return name.replaceAll("_", "-").replace(/[A-Z]|(?<=[a-z])\d(?=bit)/g, (letter) => `-${letter.toLowerCase()}`);
}

/** Returns an option as the help shows it: "-o, --option <name=value>". */
export function formatOptionUsage(name: string, spec: OptionSpec): string {
  const short = spec.short === undefined ? "" : `-${spec.short}, `;
  if (spec.type === "boolean") return `${short}--${String(spec.default) === "true" ? "[no-]" : ""}${name}`;
  return `${short}--${name} <${formatValueName(spec)}>`;
}

function formatValueName(spec: Exclude<OptionSpec, BooleanOption>): string {
  if (spec.type === "choice") return spec.choices.join("|");
  if (spec.type === "number") return spec.integer === true ? "integer" : "number";
  return spec.valueName ?? "text";
}
