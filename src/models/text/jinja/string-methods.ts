import type { Value } from "@huggingface/jinja";

import { toPythonString } from "./python-text.js";
import {
  getContent,
  isUndefined,
  iterate,
  listItems,
  listValue,
  asNumber,
  asString,
  toValue,
  tupleValue,
} from "./values.js";

/** Arguments of a call in a template. */
export interface CallArguments {
  readonly positional: readonly Value[];
  readonly named: ReadonlyMap<string, Value>;
}

type StringMethod = (text: string, args: CallArguments) => Value;

/** Whitespace of Python's str.strip. */
const pythonWhitespace = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const leadingSpace = new RegExp(`^[${pythonWhitespace}]+`);
const trailingSpace = new RegExp(`[${pythonWhitespace}]+$`);
const lineTerminatorCharacters = "\\n\\r\\v\\f\\x1c-\\x1e\\x85\\u2028\\u2029";
const lineTerminator = new RegExp(`\\r\\n|[${lineTerminatorCharacters}]`);

/** Python's str.strip, lstrip and rstrip; `characters` defaults to whitespace. */
export function strip(text: string, characters: string | undefined, side: "left" | "right" | "both" = "both"): string {
  const set = characters === undefined ? null : new Set(characters);
  let stripped = text;
  if (side !== "right") stripped = set ? stripSetLeft(stripped, set) : stripped.replace(leadingSpace, "");
  if (side !== "left") stripped = set ? stripSetRight(stripped, set) : stripRightSpace(stripped);
  return stripped;
}

/** Python's str.capitalize. */
export function capitalize(text: string): string {
  const [first = "", ...rest] = text;
  return first.toUpperCase() + rest.join("").toLowerCase();
}

/** Python's str.title. */
export function titleCase(text: string): string {
  return text.replace(/\p{L}+/gu, capitalize);
}

/** Python's str.replace; a negative count replaces all. */
export function replaceText(text: string, old: string, replacement: string, count: number): string {
  // "ab".replace("", "-") is "-a-b-": the empty string matches at every boundary.
  const parts = old === "" ? ["", ...Array.from(text), ""] : text.split(old);
  if (count < 0 || count >= parts.length - 1) return parts.join(replacement);
  return [parts.slice(0, count + 1).join(replacement), ...parts.slice(count + 1)].join(old);
}

/** String methods with Python's behavior. */
export const stringMethods: ReadonlyMap<string, StringMethod> = new Map<string, StringMethod>([
  ["strip", (text, { positional }) => toValue(strip(text, asString(positional[0])))],
  ["lstrip", (text, { positional }) => toValue(strip(text, asString(positional[0]), "left"))],
  ["rstrip", (text, { positional }) => toValue(strip(text, asString(positional[0]), "right"))],
  ["upper", (text) => toValue(text.toUpperCase())],
  ["lower", (text) => toValue(text.toLowerCase())],
  ["title", (text) => toValue(titleCase(text))],
  ["capitalize", (text) => toValue(capitalize(text))],
  ["split", (text, args) => toStringList(split(text, ...readSplitArguments(args)))],
  ["rsplit", (text, args) => toStringList(rightSplit(text, ...readSplitArguments(args)))],
  ["splitlines", (text, { positional }) => toStringList(splitLines(text, positional[0]?.value === true))],
  [
    "partition",
    (text, { positional }) =>
      toTuple(partition(text, requireString(positional[0]), text.indexOf(requireString(positional[0])))),
  ],
  [
    "rpartition",
    (text, { positional }) => {
      const index = text.lastIndexOf(requireString(positional[0]));
      return toTuple(index < 0 ? ["", "", text] : partition(text, requireString(positional[0]), index));
    },
  ],
  [
    "startswith",
    (text, { positional }) => toValue(readAffixes(positional[0]).some((prefix) => text.startsWith(prefix))),
  ],
  ["endswith", (text, { positional }) => toValue(readAffixes(positional[0]).some((suffix) => text.endsWith(suffix)))],
  ["removeprefix", (text, { positional }) => toValue(removePrefix(text, requireString(positional[0])))],
  ["removesuffix", (text, { positional }) => toValue(removeSuffix(text, requireString(positional[0])))],
  ["find", (text, { positional }) => toValue(toCodePointIndex(text, text.indexOf(requireString(positional[0]))))],
  ["rfind", (text, { positional }) => toValue(toCodePointIndex(text, text.lastIndexOf(requireString(positional[0]))))],
  ["count", (text, { positional }) => toValue(count(text, requireString(positional[0])))],
  [
    "join",
    (text, { positional }) =>
      toValue(
        iterate(positional[0] ?? toValue([]))
          .map(requireString)
          .join(text),
      ),
  ],
  ["isdigit", (text) => toValue(/^\p{Nd}+$/u.test(text))],
  ["isalpha", (text) => toValue(/^\p{L}+$/u.test(text))],
  ["isalnum", (text) => toValue(/^[\p{L}\p{N}]+$/u.test(text))],
  ["isspace", (text) => toValue(text !== "" && strip(text, undefined) === "")],
  ["isupper", (text) => toValue(text === text.toUpperCase() && text !== text.toLowerCase())],
  ["islower", (text) => toValue(text === text.toLowerCase() && text !== text.toUpperCase())],
  [
    "replace",
    (text, { positional, named }) => {
      const limit = asNumber(positional[2] ?? named.get("count"));
      return toValue(replaceText(text, requireString(positional[0]), requireString(positional[1]), limit ?? -1));
    },
  ],
  ["format", (text, args) => toValue(format(text, args))],
]);

function requireString(value: Value | undefined): string {
  const text = asString(value);
  if (text === undefined) throw new Error("string methods require string arguments");
  return text;
}

function toTuple(parts: readonly string[]): Value {
  return tupleValue(parts.map(toValue));
}

function toStringList(parts: readonly string[]): Value {
  return listValue(parts.map(toValue));
}

function stripSetLeft(text: string, set: ReadonlySet<string>): string {
  const characters = Array.from(text);
  const first = characters.findIndex((character) => !set.has(character));
  return first < 0 ? "" : characters.slice(first).join("");
}

function stripSetRight(text: string, set: ReadonlySet<string>): string {
  const characters = Array.from(text);
  const last = characters.findLastIndex((character) => !set.has(character));
  return characters.slice(0, last + 1).join("");
}

/** Scans backwards, as a regular expression ending in $ would retry every run of spaces. */
function stripRightSpace(text: string): string {
  let end = text.length;
  while (end > 0 && trailingSpace.test(text[end - 1])) end--;
  return text.slice(0, end);
}

function readSplitArguments({ positional, named }: CallArguments): [separator: string | undefined, limit: number] {
  const separator = asString(positional[0] ?? named.get("sep"));
  if (separator === "") throw new Error("empty separator");
  const limit = asNumber(positional[1] ?? named.get("maxsplit"));
  return [separator, limit === undefined || limit < 0 ? Infinity : limit];
}

function split(text: string, separator: string | undefined, limit: number): string[] {
  const parts: string[] = [];
  if (separator === undefined) {
    let rest = strip(text, undefined, "left");
    while (rest !== "" && parts.length < limit) {
      const space = rest.search(new RegExp(`[${pythonWhitespace}]`));
      parts.push(space < 0 ? rest : rest.slice(0, space));
      rest = space < 0 ? "" : strip(rest.slice(space), undefined, "left");
    }
    if (rest !== "") parts.push(rest);
    return parts;
  }
  let start = 0;
  for (
    let index = text.indexOf(separator);
    index >= 0 && parts.length < limit;
    index = text.indexOf(separator, start)
  ) {
    parts.push(text.slice(start, index));
    start = index + separator.length;
  }
  return [...parts, text.slice(start)];
}

function rightSplit(text: string, separator: string | undefined, limit: number): string[] {
  const parts = split(text, separator, Infinity);
  if (parts.length <= limit + 1) return parts;
  const head = parts.slice(0, parts.length - limit);
  if (separator !== undefined) return [head.join(separator), ...parts.slice(parts.length - limit)];
  let rest = strip(text, undefined, "right");
  for (const part of parts.slice(parts.length - limit).reverse()) {
    rest = strip(rest.slice(0, rest.length - part.length), undefined, "right");
  }
  return [rest, ...parts.slice(parts.length - limit)];
}

function splitLines(text: string, keepEnds: boolean): string[] {
  const lines: string[] = [];
  let rest = text;
  while (rest !== "") {
    const end = lineTerminator.exec(rest);
    const next = end ? end.index + end[0].length : rest.length;
    lines.push(rest.slice(0, end && !keepEnds ? end.index : next));
    rest = rest.slice(next);
  }
  return lines;
}

function partition(text: string, separator: string, index: number): string[] {
  return index < 0 ? [text, "", ""] : [text.slice(0, index), separator, text.slice(index + separator.length)];
}

function readAffixes(value: Value | undefined): string[] {
  return (value && listItems(value)?.map(requireString)) ?? [requireString(value)];
}

function removePrefix(text: string, prefix: string): string {
  return text.startsWith(prefix) ? text.slice(prefix.length) : text;
}

function removeSuffix(text: string, suffix: string): string {
  return suffix !== "" && text.endsWith(suffix) ? text.slice(0, -suffix.length) : text;
}

function toCodePointIndex(text: string, index: number): number {
  return index < 0 ? -1 : Array.from(text.slice(0, index)).length;
}

function count(text: string, part: string): number {
  return part === "" ? Array.from(text).length + 1 : text.split(part).length - 1;
}

/** Python's str.format for plain fields: {}, {0}, {name}, {{ and }}. */
function format(text: string, { positional, named }: CallArguments): string {
  let next = 0;
  return text.replace(/\{\{|\}\}|\{(\w*)\}/g, (field, name: string | undefined) => {
    if (name === undefined) return field[0];
    const value = /^\d*$/.test(name) ? positional[name === "" ? next++ : Number(name)] : named.get(name);
    if (value === undefined || isUndefined(value)) throw new Error(`format() has no value for ${field}`);
    return getContent(value, "StringValue") ?? toPythonString(value);
  });
}
