import { countCharacters } from "./code-points.js";
import { convertMarked, unmarked } from "./content-marks.js";
import { joinTexts, repeatText, spendSteps } from "./limits.js";

/** Whitespace of Python's str.strip and of \s in its expressions. */
export const WHITESPACE = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const space = new RegExp(`[${WHITESPACE}]`);
const words = new RegExp(`[^${WHITESPACE}]+`, "g");
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

/** Returns the titlecase of a character: that of "ß" is "Ss". */
function toTitleCase(character: string): string {
  const upper = character.toUpperCase();
  const [first, ...rest] = upper;
  return rest.length > 0 ? first + rest.join("").toLowerCase() : upper;
}

/** Python's str.capitalize. */
export function capitalize(text: string): string {
  return convertMarked(text, (plain) => {
    const [first = ""] = plain;
    return toTitleCase(first) + plain.slice(first.length).toLowerCase();
  });
}

/** Python's str.title. */
export function titleCase(text: string): string {
  return convertMarked(text, (plain) =>
    plain.replace(/\p{Cased}(?:\p{Cased}|\p{Mn})*/gu, (word) => {
      spendSteps(4);
      return capitalize(word);
    }),
  );
}

/** Splits a text at a separator. */
function splitAt(text: string, separator: string): string[] {
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

/** Python's str.replace; a negative count replaces all. */
export function replaceText(text: string, old: string, replacement: string, count: number): string {
  // "ab".replace("", "-") is "-a-b-": the empty string matches at every boundary.
  const parts = old === "" ? ["", ...Array.from(text), ""] : splitAt(text, old);
  if (count < 0 || count >= parts.length - 1) return joinTexts(parts, replacement);
  const first = parts.slice(0, count + 1);
  return joinTexts([joinTexts(first, replacement), text.slice(joinedLength(first, old) - old.length)], "");
}

/** Python's str.split; an undefined separator is whitespace. */
export function split(text: string, separator: string | undefined, limit: number): string[] {
  if (separator === "") throw new Error("empty separator");
  if (separator !== undefined) {
    const parts = splitAt(text, separator);
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

/** Returns the length of texts and the separators after them. */
function joinedLength(parts: readonly string[], separator: string): number {
  return parts.reduce((length, part) => length + part.length + separator.length, 0);
}

/** Python's str.rsplit; an undefined separator is whitespace. */
export function rightSplit(text: string, separator: string | undefined, limit: number): string[] {
  if (separator !== undefined) {
    if (separator === "") throw new Error("empty separator");
    const [plain, plainSeparator] = [unmarked(text), unmarked(separator)];
    const parts: string[] = [];
    let end = text.length;
    while (parts.length < limit) {
      const index = end < separator.length ? -1 : plain.lastIndexOf(plainSeparator, end - separator.length);
      if (index < 0) break;
      parts.push(text.slice(index + separator.length, end));
      end = index;
    }
    return [text.slice(0, end), ...parts.toReversed()];
  }
  const parts = split(text, undefined, Infinity);
  if (parts.length <= limit) return parts;
  const tail = parts.slice(parts.length - limit);
  let rest = strip(text, undefined, "right");
  for (const part of tail.toReversed()) rest = strip(rest.slice(0, rest.length - part.length), undefined, "right");
  return [rest, ...tail];
}

/** Python's str.splitlines. */
export function splitLines(text: string, keepEnds: boolean): string[] {
  const lines: string[] = [];
  let start = 0;
  for (const { 0: terminator, index } of unmarked(text).matchAll(lineTerminator)) {
    lines.push(text.slice(start, keepEnds ? index + terminator.length : index));
    start = index + terminator.length;
  }
  return start < text.length ? [...lines, text.slice(start)] : lines;
}

/** Python's str.zfill. */
export function zeroFill(text: string, width: number): string {
  const sign = text.slice(0, /^[+-]/.test(unmarked(text.slice(0, 1))) ? 1 : 0);
  return sign + repeatText("0", Math.max(0, width - countCharacters(text))) + text.slice(sign.length);
}

/** Python's str.expandtabs. */
export function expandTabs(text: string, size: number): string {
  const plain = Array.from(unmarked(text));
  let column = 0;
  const parts = Array.from(text).map((character, i) => {
    spendSteps(1);
    if (plain[i] === "\t") {
      const width = size > 0 ? size - (column % size) : 0;
      column += width;
      return repeatText(" ", width);
    }
    column = plain[i] === "\n" || plain[i] === "\r" ? 0 : column + 1;
    return character;
  });
  return joinTexts(parts, "");
}
