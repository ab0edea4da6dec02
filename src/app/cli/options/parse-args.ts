import { parseArgs } from "node:util";
import type { ArgsDef } from "citty";
import { suggestNames } from "../../../core/suggest.js";
import { LlamaGymError } from "../../../core/errors.js";
import { checkNumber, type NumberRule } from "../../../core/check-number.js";

interface BaseSpec {
  readonly description: string;
  /** One letter. */
  readonly alias?: string;
}

interface TextSpec extends BaseSpec {
  readonly type: "text";
  /** What stands for the value in the help: --model=<path or id>. */
  readonly hint?: string;
  readonly required?: true;
  /** May be given several times; the value is a list. */
  readonly repeated?: true;
}

interface ChoiceSpec extends BaseSpec {
  readonly type: "choice";
  readonly choices: readonly string[];
}

interface NumberSpec extends BaseSpec, NumberRule {
  readonly type: "number";
}

interface FlagSpec extends BaseSpec {
  readonly type: "flag";
}

/** Its name alone says true; "true" or "false" may follow. */
interface BooleanSpec extends BaseSpec {
  readonly type: "switch";
}

/** An option of a command. */
type OptionSpec = TextSpec | ChoiceSpec | NumberSpec | FlagSpec | BooleanSpec;

/** A command's options by their names without dashes: what is parsed, checked and shown in the help. */
export type OptionTable = Readonly<Record<string, OptionSpec>>;

type OptionValue<Spec extends OptionSpec> = Spec extends { readonly type: "flag" }
  ? boolean
  : Spec extends { readonly type: "switch" }
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

export type OptionValues<Table extends OptionTable> = { readonly [Name in keyof Table]: OptionValue<Table[Name]> };

/**
 * Reads a command's arguments. Option names may be written in any case: --top-p, --topP, --top_p.
 * Throws a UsageError for an unknown option, with the nearest known name, and for a value that is missing or cannot be.
 */
export function parseCommandArgs<const Table extends OptionTable>(
  table: Table,
  args: readonly string[],
): OptionValues<Table> {
  const tokens = tokenizeArgs(table, args);
  const values: Record<string, unknown> = {};
  for (const [name, { type }] of Object.entries(table)) if (type === "flag") values[name] = false;
  for (const token of tokens) {
    if (token.kind === "positional") throw unexpectedArgumentError(token.value, table);
    if (token.kind === "option") applyOption(table, token, values);
  }
  for (const [name, spec] of Object.entries(table)) {
    if (spec.type === "text" && spec.required === true && values[name] === undefined)
      throw new UsageError(`--${name} is missing: ${spec.description}.`);
  }
  return values as OptionValues<Table>;
}

/** The arguments that are no options, and the others. */
export function splitPositionals(
  table: OptionTable,
  args: readonly string[],
): { readonly positionals: readonly string[]; readonly rest: readonly string[] } {
  const positionalTokens = tokenizeArgs(table, args).filter((token) => token.kind === "positional");
  const indices = new Set(positionalTokens.map(({ index }) => index));
  return {
    positionals: positionalTokens.map(({ value }) => value),
    rest: args.filter((_, index) => !indices.has(index)),
  };
}

function tokenizeArgs(table: OptionTable, args: readonly string[]) {
  return parseArgs({
    args: args.map((arg, i) =>
      arg.startsWith("--") ? expandBooleanFlag(table, normalizeOptionName(arg), args[i + 1]) : arg,
    ),
    strict: false,
    tokens: true,
    options: Object.fromEntries(
      Object.entries(table).map(([name, { type, alias }]) => [
        name,
        {
          type: type === "flag" ? ("boolean" as const) : ("string" as const),
          ...(alias === undefined ? {} : { short: alias }),
        },
      ]),
    ),
  }).tokens;
}

function applyOption(
  table: OptionTable,
  { name, rawName, value }: { name: string; rawName: string; value?: string | undefined },
  values: Record<string, unknown>,
): void {
  const spec = Object.hasOwn(table, name) ? table[name] : undefined;
  if (spec === undefined) throw unknownOptionError(rawName, table);
  if (spec.type === "flag") {
    if (value !== undefined) throw new UsageError(`--${name} takes no value.`);
    values[name] = true;
    return;
  }
  if (value === undefined) throw new UsageError(`--${name} needs a value: ${spec.description}.`);
  if (spec.type === "text" && spec.repeated === true) values[name] = [...((values[name] as string[]) ?? []), value];
  else values[name] = parseValue(`--${name}`, value, spec);
}

function parseValue(name: string, value: string, spec: Exclude<OptionSpec, FlagSpec>): string | number | boolean {
  if (spec.type === "text") return value;
  if (spec.type === "switch") {
    if (value === "true" || value === "false") return value === "true";
    throw new UsageError(`${name} must be true or false, not ${value}.`);
  }
  if (spec.type === "number") {
    const number = value.trim() === "" ? NaN : Number(value);
    try {
      checkNumber(name, Number.isNaN(number) ? value : number, spec);
    } catch (error) {
      throw new UsageError((error as Error).message);
    }
    return number;
  }
  if (spec.choices.includes(value)) return value;
  throw new UsageError(`${name} must be one of ${spec.choices.join(", ")}, not ${value}.`);
}

/** --tensorboard is --tensorboard=true where neither true nor false follows. */
function expandBooleanFlag(table: OptionTable, arg: string, next: string | undefined): string {
  const name = arg.slice(2);
  const isBare = Object.hasOwn(table, name) && table[name].type === "switch" && next !== "true" && next !== "false";
  return isBare ? `${arg}=true` : arg;
}

/** --topP and --top_p are --top-p. */
function normalizeOptionName(arg: string): string {
  const end = arg.includes("=") ? arg.indexOf("=") : arg.length;
  const name = arg
    .slice(2, end)
    .replace(/_/g, "-")
    .replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  return `--${name}${arg.slice(end)}`;
}

function unknownOptionError(rawName: string, table: OptionTable): UsageError {
  const known = Object.keys(table).map((name) => `--${name}`);
  return new UsageError(`There is no option ${rawName}. ${suggestNames(rawName, known)}`);
}

function unexpectedArgumentError(value: string, table: OptionTable): UsageError {
  const example = Object.keys(table).at(0);
  return new UsageError(
    `"${value}" is not expected here; options have names${example ? `, such as --${example}` : ""}.`,
  );
}

/** The table as citty's argument definitions, for the help. */
export function toCittyArgs(table: OptionTable): ArgsDef {
  return Object.fromEntries(
    Object.entries(table).map(([name, spec]) => {
      const { description, alias } = spec;
      const shared = { description, ...(alias === undefined ? {} : { alias }) };
      if (spec.type === "flag") return [name, { ...shared, type: "boolean" as const }];
      return [name, { ...shared, type: "string" as const, valueHint: getValueHint(spec) }];
    }),
  );
}

/** "-o, --option=<name=value>" */
export function formatOptionUsage(name: string, spec: OptionTable[string]): string {
  const short = spec.alias === undefined ? "" : `-${spec.alias}, `;
  return spec.type === "flag" ? `${short}--${name}` : `${short}--${name}=<${getValueHint(spec)}>`;
}

function getValueHint(spec: Exclude<OptionSpec, FlagSpec>): string {
  if (spec.type === "choice") return spec.choices.join("|");
  if (spec.type === "switch") return "true|false";
  if (spec.type === "number") return spec.integer === true ? "integer" : "number";
  return spec.hint ?? "text";
}

/** A command that was not written as it must be; the process then ends with status 2. */
export class UsageError extends LlamaGymError {
  constructor(message: string) {
    super("INVALID_ARGUMENT", message);
  }
}
