import { checkTextLength, joinTexts, spendSteps } from "./limits.js";
import { toPythonString } from "./python-text.js";
import {
  type CallArguments,
  Tuple,
  Undefined,
  type Value,
  asNumber,
  asString,
  isTruthy,
  iterate,
  listItems,
} from "./values.js";

type StringMethod = (text: string, args: CallArguments) => Value;

/** Whitespace of Python's str.strip. */
const whitespace = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const space = new RegExp(`[${whitespace}]`);
const words = new RegExp(`[^${whitespace}]+`, "g");
const lineEnds = "\\n\\r\\v\\f\\x1c-\\x1e\\x85\\u2028\\u2029";
const lineTerminator = new RegExp(`\\r\\n|[${lineEnds}]`, "g");

/** Python's str.strip, lstrip and rstrip; `characters` defaults to whitespace. */
export function strip(text: string, characters: string | undefined, side: "left" | "right" | "both" = "both"): string {
  const set = characters === undefined ? null : new Set(characters);
  const isStripped = (character: string) => (set ? set.has(character) : space.test(character));
  const parts = set ? Array.from(text) : text;
  let start = 0;
  let end = parts.length;
  if (side !== "right") while (start < end && isStripped(parts[start])) start++;
  if (side !== "left") while (end > start && isStripped(parts[end - 1])) end--;
  return typeof parts === "string" ? parts.slice(start, end) : parts.slice(start, end).join("");
}

/** Python's str.capitalize. */
export function capitalize(text: string): string {
  const [first = "", ...rest] = text;
  return first.toUpperCase() + rest.join("").toLowerCase();
}

/** Python's str.title. */
export function titleCase(text: string): string {
  let titled = "";
  let end = 0;
  for (const { 0: word, index } of text.matchAll(/\p{L}+/gu)) {
    spendSteps(4);
    titled += text.slice(end, index) + capitalize(word);
    end = index + word.length;
  }
  return titled + text.slice(end);
}

/** Python's str.replace; a negative count replaces all. */
export function replaceText(text: string, old: string, replacement: string, count: number): string {
  // "ab".replace("", "-") is "-a-b-": the empty string matches at every boundary.
  const parts = old === "" ? ["", ...Array.from(text), ""] : text.split(old);
  if (count < 0 || count >= parts.length - 1) return joinTexts(parts, replacement);
  return joinTexts([joinTexts(parts.slice(0, count + 1), replacement), ...parts.slice(count + 1)], old);
}

/** String methods with Python's behavior. */
export const stringMethods: ReadonlyMap<string, StringMethod> = new Map<string, StringMethod>([
  ["strip", (text, { positional }) => strip(text, asString(positional[0]))],
  ["lstrip", (text, { positional }) => strip(text, asString(positional[0]), "left")],
  ["rstrip", (text, { positional }) => strip(text, asString(positional[0]), "right")],
  ["upper", (text) => text.toUpperCase()],
  ["lower", (text) => text.toLowerCase()],
  ["title", titleCase],
  ["capitalize", capitalize],
  ["split", (text, args) => split(text, ...readSplitArguments(args))],
  ["rsplit", (text, args) => rightSplit(text, ...readSplitArguments(args))],
  ["splitlines", (text, { positional }) => splitLines(text, positional[0] !== undefined && isTruthy(positional[0]))],
  [
    "partition",
    (text, { positional }) => partition(text, requireString(positional[0]), text.indexOf(requireString(positional[0]))),
  ],
  [
    "rpartition",
    (text, { positional }) => {
      const index = text.lastIndexOf(requireString(positional[0]));
      return index < 0 ? new Tuple(["", "", text]) : partition(text, requireString(positional[0]), index);
    },
  ],
  ["startswith", (text, { positional }) => readAffixes(positional[0]).some((prefix) => text.startsWith(prefix))],
  ["endswith", (text, { positional }) => readAffixes(positional[0]).some((suffix) => text.endsWith(suffix))],
  ["removeprefix", (text, { positional }) => removeAffix(text, requireString(positional[0]), "start")],
  ["removesuffix", (text, { positional }) => removeAffix(text, requireString(positional[0]), "end")],
  ["find", (text, { positional }) => toCodePointIndex(text, text.indexOf(requireString(positional[0])))],
  ["rfind", (text, { positional }) => toCodePointIndex(text, text.lastIndexOf(requireString(positional[0])))],
  ["count", (text, { positional }) => count(text, requireString(positional[0]))],
  ["join", (text, { positional }) => joinTexts(iterate(positional[0] ?? []).map(requireString), text)],
  ["isdigit", (text) => /^\p{Nd}+$/u.test(text)],
  ["isalpha", (text) => /^\p{L}+$/u.test(text)],
  ["isalnum", (text) => /^[\p{L}\p{N}]+$/u.test(text)],
  ["isspace", (text) => text !== "" && strip(text, undefined) === ""],
  ["isupper", (text) => text === text.toUpperCase() && text !== text.toLowerCase()],
  ["islower", (text) => text === text.toLowerCase() && text !== text.toUpperCase()],
  [
    "replace",
    (text, { positional, named }) => {
      const limit = asNumber(positional[2] ?? named.get("count"));
      return replaceText(text, requireString(positional[0]), requireString(positional[1]), limit ?? -1);
    },
  ],
  ["format", format],
]);

function requireString(value: Value | undefined): string {
  if (typeof value !== "string") throw new Error("string methods require string arguments");
  return value;
}

function readSplitArguments({ positional, named }: CallArguments): [separator: string | undefined, limit: number] {
  const separator = asString(positional[0] ?? named.get("sep"));
  if (separator === "") throw new Error("empty separator");
  const limit = asNumber(positional[1] ?? named.get("maxsplit"));
  return [separator, limit === undefined || limit < 0 ? Infinity : limit];
}

function split(text: string, separator: string | undefined, limit: number): string[] {
  if (separator !== undefined) {
    const parts = text.split(separator);
    return parts.length <= limit + 1 ? parts : [...parts.slice(0, limit), joinTexts(parts.slice(limit), separator)];
  }
  const parts: string[] = [];
  for (const { 0: word, index } of text.matchAll(words)) {
    if (parts.length >= limit) return [...parts, text.slice(index)];
    parts.push(word);
  }
  return parts;
}

function rightSplit(text: string, separator: string | undefined, limit: number): string[] {
  const parts = split(text, separator, Infinity);
  if (parts.length <= limit + 1) return parts;
  const tail = parts.slice(parts.length - limit);
  if (separator !== undefined) return [joinTexts(parts.slice(0, parts.length - limit), separator), ...tail];
  let rest = strip(text, undefined, "right");
  for (const part of tail.toReversed()) rest = strip(rest.slice(0, rest.length - part.length), undefined, "right");
  return [rest, ...tail];
}

function splitLines(text: string, keepEnds: boolean): string[] {
  const lines: string[] = [];
  let start = 0;
  for (const { 0: terminator, index } of text.matchAll(lineTerminator)) {
    lines.push(text.slice(start, keepEnds ? index + terminator.length : index));
    start = index + terminator.length;
  }
  return start < text.length ? [...lines, text.slice(start)] : lines;
}

function partition(text: string, separator: string, index: number): Tuple {
  return new Tuple(
    index < 0 ? [text, "", ""] : [text.slice(0, index), separator, text.slice(index + separator.length)],
  );
}

function readAffixes(value: Value | undefined): string[] {
  return listItems(value)?.map(requireString) ?? [requireString(value)];
}

function removeAffix(text: string, affix: string, side: "start" | "end"): string {
  if (side === "start") return text.startsWith(affix) ? text.slice(affix.length) : text;
  return affix !== "" && text.endsWith(affix) ? text.slice(0, -affix.length) : text;
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
  let length = text.length;
  return text.replace(/\{\{|\}\}|\{(\w*)\}/g, (field, name: string | undefined) => {
    if (name === undefined) return field[0];
    spendSteps(1);
    const value = /^\d*$/.test(name) ? positional[name === "" ? next++ : Number(name)] : named.get(name);
    if (value === undefined || value instanceof Undefined) throw new Error(`format() has no value for ${field}`);
    const formatted = toPythonString(value);
    length += formatted.length;
    checkTextLength(length);
    return formatted;
  });
}
