import { contentMarks, convertMarked, unmarked } from "./content-marks.js";
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
  const set = characters === undefined ? null : new Set(unmarked(characters));
  const isStripped = (character: string) => (set ? set.has(unmarked(character)) : space.test(unmarked(character)));
  let start = 0;
  let end = text.length;
  const [lastStart, firstEnd] = [side === "right" ? 0 : end, side === "left" ? end : 0];
  while (start < lastStart) {
    const character = String.fromCodePoint(text.codePointAt(start)!);
    if (!isStripped(character)) break;
    start += character.length;
  }
  while (end > Math.max(start, firstEnd)) {
    const isPair = end - start > 1 && text.codePointAt(end - 2)! > 0xffff;
    const character = text.slice(isPair ? end - 2 : end - 1, end);
    if (!isStripped(character)) break;
    end -= character.length;
  }
  return text.slice(start, end);
}

/** Python's str.capitalize. */
export function capitalize(text: string): string {
  return convertMarked(text, (plain) => {
    const [first = ""] = plain;
    return first.toUpperCase() + plain.slice(first.length).toLowerCase();
  });
}

/** Python's str.title. */
export function titleCase(text: string): string {
  return convertMarked(text, (plain) =>
    plain.replace(/\p{L}+/gu, (word) => {
      spendSteps(4);
      return capitalize(word);
    }),
  );
}

/** Splits a text at a separator, which may be content or not. */
function splitAtText(text: string, separator: string): string[] {
  const plain = unmarked(text);
  const plainSeparator = unmarked(separator);
  if (plain === text) return text.split(plainSeparator);
  const parts: string[] = [];
  let end = 0;
  for (let index = plain.indexOf(plainSeparator); index >= 0; index = plain.indexOf(plainSeparator, end)) {
    parts.push(text.slice(end, index));
    end = index + separator.length;
  }
  return [...parts, text.slice(end)];
}

/** Splits a text at the matches of a global expression. */
export function splitAtMatches(text: string, pattern: RegExp): string[] {
  const parts: string[] = [];
  let end = 0;
  for (const { 0: match, index } of unmarked(text).matchAll(pattern)) {
    parts.push(text.slice(end, index));
    end = index + match.length;
  }
  return [...parts, text.slice(end)];
}

/** Python's str.replace; a negative count replaces all. */
export function replaceText(text: string, old: string, replacement: string, count: number): string {
  // "ab".replace("", "-") is "-a-b-": the empty string matches at every boundary.
  const parts = old === "" ? ["", ...Array.from(text), ""] : splitAtText(text, old);
  if (count < 0 || count >= parts.length - 1) return joinTexts(parts, replacement);
  const first = parts.slice(0, count + 1);
  return joinTexts([joinTexts(first, replacement), text.slice(joinedLength(first, old) - old.length)], "");
}

/** String methods with Python's behavior. */
export const stringMethods: ReadonlyMap<string, StringMethod> = new Map<string, StringMethod>([
  ["strip", (text, { positional }) => strip(text, asString(positional[0]))],
  ["lstrip", (text, { positional }) => strip(text, asString(positional[0]), "left")],
  ["rstrip", (text, { positional }) => strip(text, asString(positional[0]), "right")],
  ["upper", (text) => convertMarked(text, (plain) => plain.toUpperCase())],
  ["lower", (text) => convertMarked(text, (plain) => plain.toLowerCase())],
  ["title", titleCase],
  ["capitalize", capitalize],
  ["split", (text, args) => split(text, ...readSplitArguments(args))],
  ["rsplit", (text, args) => rightSplit(text, ...readSplitArguments(args))],
  ["splitlines", (text, { positional }) => splitLines(text, positional[0] !== undefined && isTruthy(positional[0]))],
  [
    "partition",
    (text, { positional }) => {
      const separator = requireString(positional[0]);
      return partition(text, separator, unmarked(text).indexOf(unmarked(separator)));
    },
  ],
  [
    "rpartition",
    (text, { positional }) => {
      const separator = requireString(positional[0]);
      const index = unmarked(text).lastIndexOf(unmarked(separator));
      return index < 0 ? new Tuple(["", "", text]) : partition(text, separator, index);
    },
  ],
  ["startswith", (text, { positional }) => readAffixes(positional[0]).some((prefix) => startsWith(text, prefix))],
  ["endswith", (text, { positional }) => readAffixes(positional[0]).some((suffix) => endsWith(text, suffix))],
  ["removeprefix", (text, { positional }) => removeAffix(text, requireString(positional[0]), "start")],
  ["removesuffix", (text, { positional }) => removeAffix(text, requireString(positional[0]), "end")],
  [
    "find",
    (text, { positional }) => toCodePointIndex(text, unmarked(text).indexOf(unmarked(requireString(positional[0])))),
  ],
  [
    "rfind",
    (text, { positional }) =>
      toCodePointIndex(text, unmarked(text).lastIndexOf(unmarked(requireString(positional[0])))),
  ],
  ["count", (text, { positional }) => count(text, requireString(positional[0]))],
  ["join", (text, { positional }) => joinTexts(iterate(positional[0] ?? []).map(requireString), text)],
  ["isdigit", (text) => /^\p{Nd}+$/u.test(unmarked(text))],
  ["isalpha", (text) => /^\p{L}+$/u.test(unmarked(text))],
  ["isalnum", (text) => /^[\p{L}\p{N}]+$/u.test(unmarked(text))],
  ["isspace", (text) => text !== "" && strip(text, undefined) === ""],
  ["isupper", (text) => isCased(unmarked(text), (plain) => plain.toUpperCase())],
  ["islower", (text) => isCased(unmarked(text), (plain) => plain.toLowerCase())],
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
    const parts = splitAtText(text, separator);
    if (parts.length <= limit + 1) return parts;
    const first = parts.slice(0, limit);
    return [...first, text.slice(joinedLength(first, separator))];
  }
  const parts: string[] = [];
  for (const { 0: word, index } of unmarked(text).matchAll(words)) {
    if (parts.length >= limit) return [...parts, text.slice(index)];
    parts.push(text.slice(index, index + word.length));
  }
  return parts;
}

function rightSplit(text: string, separator: string | undefined, limit: number): string[] {
  const parts = split(text, separator, Infinity);
  if (parts.length <= limit + 1) return parts;
  const tail = parts.slice(parts.length - limit);
  if (separator !== undefined) return [text.slice(0, text.length - joinedLength(tail, separator)), ...tail];
  let rest = strip(text, undefined, "right");
  for (const part of tail.toReversed()) rest = strip(rest.slice(0, rest.length - part.length), undefined, "right");
  return [rest, ...tail];
}

/** Returns the length of texts and the separators after or before them. */
function joinedLength(parts: readonly string[], separator: string): number {
  return parts.reduce((length, part) => length + part.length + separator.length, 0);
}

function splitLines(text: string, keepEnds: boolean): string[] {
  const lines: string[] = [];
  let start = 0;
  for (const { 0: terminator, index } of unmarked(text).matchAll(lineTerminator)) {
    lines.push(text.slice(start, keepEnds ? index + terminator.length : index));
    start = index + terminator.length;
  }
  return start < text.length ? [...lines, text.slice(start)] : lines;
}

function partition(text: string, separator: string, index: number): Tuple {
  return new Tuple(
    index < 0
      ? [text, "", ""]
      : [text.slice(0, index), text.slice(index, index + separator.length), text.slice(index + separator.length)],
  );
}

function readAffixes(value: Value | undefined): string[] {
  return listItems(value)?.map(requireString) ?? [requireString(value)];
}

function removeAffix(text: string, affix: string, side: "start" | "end"): string {
  if (side === "start") return startsWith(text, affix) ? text.slice(affix.length) : text;
  return affix !== "" && endsWith(text, affix) ? text.slice(0, -affix.length) : text;
}

/** Whether a text has letters, all in the case of `convert`. */
function isCased(text: string, convert: (text: string) => string): boolean {
  return text === convert(text) && text.toLowerCase() !== text.toUpperCase();
}

function startsWith(text: string, prefix: string): boolean {
  return unmarked(text.slice(0, prefix.length)) === unmarked(prefix);
}

function endsWith(text: string, suffix: string): boolean {
  return unmarked(text.slice(Math.max(0, text.length - suffix.length))) === unmarked(suffix);
}

function toCodePointIndex(text: string, index: number): number {
  return index < 0 ? -1 : Array.from(text.slice(0, index)).length;
}

function count(text: string, part: string): number {
  return part === "" ? Array.from(text).length + 1 : splitAtText(text, part).length - 1;
}

/** Python's str.format for plain fields: {}, {0}, {name}, {{ and }}. */
function format(text: string, { positional, named }: CallArguments): string {
  let next = 0;
  let length = text.length;
  return contentMarks()
    .restore(text, (character) => /[{}\w]/.test(character))
    .replace(/\{\{|\}\}|\{(\w*)\}/g, (field, name: string | undefined) => {
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
