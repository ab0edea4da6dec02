import { countCharacters, sliceCharacters, toCharacters } from "./code-points.js";
import { convertMarked, unmarked } from "./content-marks.js";
import { PythonDict } from "./dict.js";
import { iterate } from "./iteration.js";
import { joinTexts, repeatText, spendSteps } from "./limits.js";
import { escapeMarkup, stripTags } from "./markup.js";
import { asInt } from "./numbers.js";
import { characterTests } from "./string-tests.js";
import {
  capitalize,
  expandTabs,
  replaceText,
  rightSplit,
  split,
  splitLines,
  strip,
  titleCase,
  zeroFill,
} from "./text-functions.js";
import {
  Bytes,
  type CallArguments,
  Markup,
  type TemplateFunction,
  PythonTuple,
  type Value,
  asPlainString,
  asString,
  getPythonType,
  isTruthy,
  listItems,
} from "./values.js";

type StringMethod = (text: string, args: readonly (Value | undefined)[]) => Value;

interface Signature {
  /** Names of the parameters that may be passed by name. */
  readonly names?: readonly string[];
  readonly required?: number;
  readonly max: number;
  readonly call: StringMethod;
}

const noArguments = (call: StringMethod): Signature => ({ max: 0, call });
const positional = (required: number, max: number, call: StringMethod): Signature => ({ required, max, call });
/** Creates a method whose result has no text: it reads the texts without content marks. */
const reading = (required: number, max: number, call: StringMethod): Signature =>
  positional(required, max, (text, args) => call(unmarked(text), args.map(unmarkArgument)));
const converting = (convert: (text: string) => string) => noArguments((text) => convertMarked(text, convert));

function unmarkArgument(value: Value | undefined): Value | undefined {
  return value instanceof PythonTuple
    ? new PythonTuple(value.items.map((item) => asPlainString(item) ?? item))
    : (asPlainString(value) ?? value);
}

function requireString(value: Value | undefined): string {
  const text = asString(value);
  if (text === undefined) throw new Error(`a string is required, not ${getPythonType(value ?? null)}`);
  return text;
}

function requireInt(value: Value | undefined, fallback: number): number {
  if (value === undefined || value === null) return fallback;
  const integer = asInt(value);
  if (integer === undefined) throw new Error(`'${getPythonType(value)}' object cannot be interpreted as an integer`);
  return Number(integer);
}

/** Reads the argument of strip and split: None and no argument are the default. */
const optionalString = (value: Value | undefined) =>
  value === undefined || value === null ? undefined : requireString(value);

/** Returns the part of a text that start and end select, and its offset. */
function window(
  text: string,
  start: Value | undefined,
  end: Value | undefined,
): { part: string; offset: number } | undefined {
  const length = countCharacters(text);
  const resolve = (bound: Value | undefined, fallback: number) => {
    const index = requireInt(bound, fallback);
    return Math.min(Math.max(index < 0 ? index + length : index, 0), index > length ? index : length);
  };
  const [offset, stop] = [resolve(start, 0), Math.min(resolve(end, length), length)];
  if (offset > length) return undefined;
  return { part: stop < offset ? "" : sliceCharacters(text, offset, stop), offset: stop < offset ? -1 : offset };
}

function find(text: string, [part, start, end]: readonly (Value | undefined)[], fromEnd: boolean): number {
  const selected = window(text, start, end);
  const searched = requireString(part);
  if (!selected || selected.offset < 0) return -1;
  const index = fromEnd ? selected.part.lastIndexOf(searched) : selected.part.indexOf(searched);
  return index < 0 ? -1 : selected.offset + countCharacters(selected.part.slice(0, index));
}

function findOrThrow(text: string, args: readonly (Value | undefined)[], fromEnd: boolean): number {
  const index = find(text, args, fromEnd);
  if (index < 0) throw new Error("substring not found");
  return index;
}

function count(text: string, [part, start, end]: readonly (Value | undefined)[]): number {
  const selected = window(text, start, end);
  const searched = requireString(part);
  if (!selected || selected.offset < 0) return 0;
  return searched === "" ? countCharacters(selected.part) + 1 : selected.part.split(searched).length - 1;
}

function hasAffix(
  text: string,
  [affix, start, end]: readonly (Value | undefined)[],
  side: "startsWith" | "endsWith",
): boolean {
  const affixes = affix instanceof PythonTuple ? affix.items.map(requireString) : [requireString(affix)];
  const selected = window(text, start, end);
  return selected !== undefined && selected.offset >= 0 && affixes.some((each) => selected.part[side](each));
}

function partition(text: string, [part]: readonly (Value | undefined)[], find: "indexOf" | "lastIndexOf"): PythonTuple {
  const separator = requireString(part);
  if (separator === "") throw new Error("empty separator");
  const index = unmarked(text)[find](unmarked(separator));
  if (index < 0) return new PythonTuple(find === "indexOf" ? [text, "", ""] : ["", "", text]);
  return new PythonTuple([text.slice(0, index), separator, text.slice(index + separator.length)]);
}

function removeAffix(text: string, [part]: readonly (Value | undefined)[], side: "startsWith" | "endsWith"): string {
  const affix = requireString(part);
  if (affix === "" || !unmarked(text)[side](unmarked(affix))) return text;
  return side === "startsWith" ? text.slice(affix.length) : text.slice(0, -affix.length);
}

function justify(text: string, [width, fill]: readonly (Value | undefined)[], side: "left" | "right" | "both"): string {
  const filler = fill === undefined ? " " : requireString(fill);
  if (countCharacters(filler) !== 1) throw new Error("The fill character must be exactly one character long");
  const size = requireInt(width, 0);
  const missing = Math.max(0, size - countCharacters(text));
  // CPython's str.center.
  const left = side === "both" ? Math.floor(missing / 2) + (missing & size & 1) : side === "left" ? 0 : missing;
  return repeatText(filler, left) + text + repeatText(filler, missing - left);
}

function encode(text: string, [encoding]: readonly (Value | undefined)[]): Bytes {
  const name = (asString(encoding) ?? "utf-8").toLowerCase().replaceAll("_", "-");
  if (!["utf-8", "utf8"].includes(name) && !(name === "ascii" && /^[\0-\x7f]*$/.test(text)))
    throw new Error(`the encoding ${name} is not supported`);
  return new Bytes(new TextEncoder().encode(text));
}

const codePoint = (text: string) => text.codePointAt(0) ?? 0;

function translate(text: string, [table]: readonly (Value | undefined)[]): string {
  if (!(table instanceof PythonDict)) throw new Error("translate() requires a table of str.maketrans");
  const characters = Array.from(toCharacters(text), (character) => {
    spendSteps(1);
    const replacement = table.get(codePoint(unmarked(character)));
    if (replacement === undefined) return character;
    const code = asInt(replacement);
    return replacement === null
      ? ""
      : code === undefined
        ? requireString(replacement)
        : String.fromCodePoint(Number(code));
  });
  return joinTexts(characters, "");
}

function makeTranslation([from, to, removed]: readonly (Value | undefined)[]): PythonDict {
  if (from instanceof PythonDict)
    return new PythonDict(
      from
        .entries()
        .map(([key, value]) => [asString(key) === undefined ? key : codePoint(unmarked(requireString(key))), value]),
    );
  const [source, target] = [Array.from(requireString(from)), Array.from(requireString(to))];
  if (source.length !== target.length) throw new Error("the first two maketrans arguments must have equal length");
  const table = new PythonDict(source.map((character, i) => [codePoint(unmarked(character)), codePoint(target[i])]));
  for (const character of Array.from(asString(removed) ?? "")) table.set(codePoint(unmarked(character)), null);
  return table;
}

const splitSignature = (call: typeof split): Signature => ({
  names: ["sep", "maxsplit"],
  max: 2,
  call: (text, [separator, limit]) => {
    const size = limit === undefined ? -1 : requireInt(limit, -1);
    return call(text, optionalString(separator), size < 0 ? Infinity : size);
  },
});

const stringMethods: ReadonlyMap<string, Signature> = new Map<string, Signature>([
  ...Array.from(characterTests, ([name, test]): [string, Signature] => [name, reading(0, 0, test)]),
  ["strip", positional(0, 1, (text, [characters]) => strip(text, optionalString(characters)))],
  ["lstrip", positional(0, 1, (text, [characters]) => strip(text, optionalString(characters), "left"))],
  ["rstrip", positional(0, 1, (text, [characters]) => strip(text, optionalString(characters), "right"))],
  ["upper", converting((text) => text.toUpperCase())],
  ["lower", converting((text) => text.toLowerCase())],
  ["casefold", converting((text) => text.toLowerCase().replaceAll("ß", "ss").replaceAll("ς", "σ"))],
  [
    "swapcase",
    converting((text) =>
      text.replace(/\p{L}/gu, (letter) =>
        letter === letter.toUpperCase() ? letter.toLowerCase() : letter.toUpperCase(),
      ),
    ),
  ],
  ["title", noArguments(titleCase)],
  ["capitalize", noArguments(capitalize)],
  ["split", splitSignature(split)],
  ["rsplit", splitSignature(rightSplit)],
  [
    "splitlines",
    { names: ["keepends"], max: 1, call: (text, [keep]) => splitLines(text, keep !== undefined && isTruthy(keep)) },
  ],
  ["partition", positional(1, 1, (text, args) => partition(text, args, "indexOf"))],
  ["rpartition", positional(1, 1, (text, args) => partition(text, args, "lastIndexOf"))],
  ["startswith", reading(1, 3, (text, args) => hasAffix(text, args, "startsWith"))],
  ["endswith", reading(1, 3, (text, args) => hasAffix(text, args, "endsWith"))],
  ["removeprefix", positional(1, 1, (text, args) => removeAffix(text, args, "startsWith"))],
  ["removesuffix", positional(1, 1, (text, args) => removeAffix(text, args, "endsWith"))],
  ["find", reading(1, 3, (text, args) => find(text, args, false))],
  ["rfind", reading(1, 3, (text, args) => find(text, args, true))],
  ["index", reading(1, 3, (text, args) => findOrThrow(text, args, false))],
  ["rindex", reading(1, 3, (text, args) => findOrThrow(text, args, true))],
  ["count", reading(1, 3, count)],
  ["join", positional(1, 1, (text, [items = null]) => joinTexts(iterate(items).map(requireString), text))],
  [
    "replace",
    positional(2, 3, (text, [old, replacement, limit]) =>
      replaceText(text, requireString(old), requireString(replacement), requireInt(limit, -1)),
    ),
  ],
  ["center", positional(1, 2, (text, args) => justify(text, args, "both"))],
  ["ljust", positional(1, 2, (text, args) => justify(text, args, "left"))],
  ["rjust", positional(1, 2, (text, args) => justify(text, args, "right"))],
  ["zfill", positional(1, 1, (text, [width]) => zeroFill(text, requireInt(width, 0)))],
  ["expandtabs", { names: ["tabsize"], max: 1, call: (text, [size]) => expandTabs(text, requireInt(size, 8)) }],
  ["encode", { ...reading(0, 2, encode), names: ["encoding", "errors"] }],
  ["translate", positional(1, 1, translate)],
  ["maketrans", positional(1, 3, (_, args) => makeTranslation(args))],
]);

function bind({ names = [], required = 0, max }: Signature, name: string, args: CallArguments): (Value | undefined)[] {
  const bound: (Value | undefined)[] = [...args.positional];
  if (bound.length > max) throw new Error(`${name}() takes at most ${max} arguments (${bound.length} given)`);
  args.named.forEach((value, key) => {
    const index = names.indexOf(key);
    if (index < 0) throw new Error(`${name}() takes no keyword argument '${key}'`);
    if (bound[index] !== undefined) throw new Error(`argument for ${name}() given by name ('${key}') and position`);
    bound[index] = value;
  });
  if (args.positional.length < required)
    throw new Error(`${name}() takes at least ${required} arguments (${args.positional.length} given)`);
  return bound;
}

/** Methods of Markup whose texts are plain, or that take plain texts. */
const plainMethods = new Set(["encode", "maketrans"]);

/** Returns a method of a string or Markup, or undefined. */
export function findStringMethod(owner: Value, name: string): TemplateFunction | undefined {
  const text = asString(owner) ?? "";
  if (owner instanceof Markup && name === "striptags") return () => stripTags(text);
  if (owner instanceof Markup && name === "unescape") return () => stripTags(text.replaceAll("<", "&lt;"));
  const method = stringMethods.get(name);
  if (!method) return undefined;
  if (!(owner instanceof Markup) || plainMethods.has(name))
    return (args) => method.call(text, bind(method, name, args));
  return (args) =>
    wrap(
      method.call(text, bind(method, name, name === "join" || name === "replace" ? escapeArguments(name, args) : args)),
    );
}

/** Escapes the texts that a method adds to Markup. */
function escapeArguments(name: string, { positional, named }: CallArguments): CallArguments {
  if (name === "join") return { positional: positional.map((items) => iterate(items).map(escapeMarkup)), named };
  return { positional: positional.map((value, i) => (i === 1 ? escapeMarkup(value) : value)), named };
}

/** Returns Markup for text in a method's result. */
function wrap(result: Value): Value {
  if (typeof result === "string") return new Markup(result);
  if (result instanceof PythonTuple) return new PythonTuple(result.items.map(wrap));
  return listItems(result)?.map(wrap) ?? result;
}
