import { parseArgs } from "node:util";
import { checkNumber } from "../../../core/check-number.js";
import { findNearestName } from "../../../core/suggest.js";
import { toOptionName, type OptionSpec, type OptionTable, type OptionValues } from "./option-table.js";
import { UsageError } from "./usage-error.js";

/** Advice for devices that go by another name here. */
const DEVICE_ADVICE: ReadonlyMap<string, string> = new Map([
  ["mps", "webgpu runs on Apple GPUs."],
  ["metal", "webgpu runs on Apple GPUs."],
  ["gpu", "cuda runs on NVIDIA GPUs, webgpu on all."],
]);

export interface ParsedArgs<Table extends OptionTable> {
  readonly values: OptionValues<Table>;
  /** The arguments that are no options and no values of options. */
  readonly positionals: readonly string[];
}

/**
 * Parses a command's arguments. Option names may also be written in camelCase or snake_case, and by their aliases.
 * @throws UsageError for an unknown option and for a missing or invalid value.
 */
export function parseCommandArgs<const Table extends OptionTable>(
  table: Table,
  args: readonly string[],
): ParsedArgs<Table> {
  const values: Record<string, unknown> = {};
  const positionals: string[] = [];
  for (const token of tokenize(table, args)) {
    if (token.kind === "positional") positionals.push(token.value);
    if (token.kind === "option") applyOption(table, token, values);
  }
  return { values: values as OptionValues<Table>, positionals };
}

/** @throws UsageError when a required option is missing. */
export function checkRequiredOptions(table: OptionTable, values: Readonly<Record<string, unknown>>): void {
  for (const [name, spec] of Object.entries(table))
    if (spec.type === "text" && spec.required === true && values[name] === undefined)
      throw new UsageError(`--${name} is missing: ${spec.description}`);
}

function tokenize(table: OptionTable, args: readonly string[]) {
  const terminator = args.includes("--") ? args.indexOf("--") : args.length;
  const names = resolveAliases(table);
  const normalized = args.map((arg, i) =>
    i < terminator && arg.startsWith("--") ? normalizeOption(table, names, arg, args[i + 1]) : arg,
  );
  const options = Object.entries(table).map(([name, { short }]) => [
    name,
    { type: "string" as const, ...(short === undefined ? {} : { short }) },
  ]);
  return parseArgs({
    args: normalized,
    strict: false,
    tokens: true,
    options: Object.fromEntries(options) as Record<string, { type: "string"; short?: string }>,
  }).tokens;
}

/** Returns the name of the option for each name and alias. */
function resolveAliases(table: OptionTable): ReadonlyMap<string, string> {
  return new Map(
    Object.entries(table).flatMap(([name, { aliases = [] }]) =>
      [name, ...aliases].map((alias) => [toOptionName(alias), name] as const),
    ),
  );
}

/** Rewrites "--topP" as "--top-p", "--json" as "--json=true" and "--no-json" as "--json=false". */
function normalizeOption(
  table: OptionTable,
  names: ReadonlyMap<string, string>,
  arg: string,
  next: string | undefined,
): string {
  const end = arg.includes("=") ? arg.indexOf("=") : arg.length;
  const [given, inlineValue] = [toOptionName(arg.slice(2, end)), arg.slice(end)];
  const positive = names.get(given.replace(/^no-/, ""));
  if (!names.has(given) && given.startsWith("no-") && positive !== undefined && table[positive].type === "boolean") {
    if (inlineValue !== "") throw new UsageError(`--${given} takes no value.`);
    return `--${positive}=false`;
  }
  const name = names.get(given) ?? given;
  const isBare = inlineValue === "" && Object.hasOwn(table, name) && table[name].type === "boolean";
  return `--${name}${isBare && next !== "true" && next !== "false" ? "=true" : inlineValue}`;
}

interface OptionToken {
  readonly name: string;
  readonly rawName: string;
  readonly value?: string | undefined;
  readonly inlineValue?: boolean | undefined;
}

function applyOption(
  table: OptionTable,
  { name, rawName, value, inlineValue }: OptionToken,
  values: Record<string, unknown>,
): void {
  const spec = Object.hasOwn(table, name) ? table[name] : undefined;
  if (spec === undefined) throw unknownOptionError(rawName, table);
  if (value === undefined || (inlineValue === false && isOptionLike(value)))
    throw new UsageError(`--${name} needs a value: ${spec.description}`);
  if (spec.type === "text" && spec.repeated === true) values[name] = [...((values[name] as string[]) ?? []), value];
  else values[name] = parseValue(`--${name}`, value, spec);
}

/** Negative numbers and "-" (standard input) are values; other arguments that begin with a dash are options. */
function isOptionLike(arg: string): boolean {
  return /^--|^-[a-z]/i.test(arg) && Number.isNaN(Number(arg));
}

function parseValue(name: string, value: string, spec: OptionSpec): string | number | boolean {
  if (spec.type === "text") return value;
  if (spec.type === "boolean") {
    if (value === "true" || value === "false") return value === "true";
    throw new UsageError(`${name} must be true or false, got ${value}.`);
  }
  if (spec.type === "choice") {
    if (spec.choices.includes(value)) return value;
    const advice = name === "--device" && DEVICE_ADVICE.has(value) ? ` ${DEVICE_ADVICE.get(value)!}` : "";
    throw new UsageError(`${name} must be one of ${spec.choices.join(", ")}, got ${value}.${advice}`);
  }
  const number = value.trim() === "" ? NaN : Number(value);
  try {
    checkNumber(name, Number.isNaN(number) ? value : number, spec);
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
  return number;
}

function unknownOptionError(rawName: string, table: OptionTable): UsageError {
  const known = [...resolveAliases(table).keys()];
  const given = rawName.replace(/^-+/, "");
  const nearest = known.find((name) => toInitials(name) === given) ?? findNearestName(given, known);
  const advice = nearest === undefined ? "Add --help-all to list all options." : `Did you mean --${nearest}?`;
  return new UsageError(`There is no option ${rawName}. ${advice}`);
}

/** Returns "lr" for "learning-rate". */
function toInitials(name: string): string {
  return name
    .split("-")
    .map(([letter]) => letter)
    .join("");
}
