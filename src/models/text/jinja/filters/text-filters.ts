import { countCharacters, sliceCharacters } from "../code-points.js";
import { convertMarked, rewriteMarked, unmarked } from "../content-marks.js";
import { PythonDict } from "../dict.js";
import { getLength, isIterable, iterate } from "../iteration.js";
import { checkTextLength, joinTexts, repeatText } from "../limits.js";
import { escapeMarkup, forceEscape, stripTags } from "../markup.js";
import { asNumber, parseFloatText, requireIndex } from "../numbers.js";
import { applyOperator } from "../operators.js";
import { toPythonJson } from "../python-json.js";
import { toPythonString } from "../python-text.js";
import { findStringMethod } from "../string-methods.js";
import { WHITESPACE, replaceText, rightSplit, splitLines } from "../text-functions.js";
import {
  Markup,
  PythonTuple,
  Undefined,
  type Value,
  asPlainString,
  asString,
  getPythonType,
  isTruthy,
  listItems,
  mapText,
  requireDefined,
} from "../values.js";
import { type FilterFunction, defineFilter } from "./define-filter.js";

/** Python's soft_str: the text of a value, which stays Markup. */
const softString = (value: Value): Value => (value instanceof Markup ? value : toPythonString(value));

/** Creates a filter that is a method of the value's text. */
function methodFilter(name: string, parameters: readonly string[], defaults: readonly Value[] = []): FilterFunction {
  return defineFilter(parameters, (value, args) => {
    const method = findStringMethod(softString(value), name);
    const positional = parameters
      .map((_, i) => (args[i] === undefined ? defaults[i] : args[i]))
      .filter((arg) => arg !== undefined);
    return method?.({ positional, named: new Map() }) ?? null;
  });
}

function titleWords(value: Value): string {
  return convertMarked(toPythonString(value), (text) => {
    const parts = text.split(new RegExp(`([-${WHITESPACE}({[<]+)`)).map((part) => {
      const first = sliceCharacters(part.slice(0, 2), 0, 1);
      return first.toUpperCase() + part.slice(first.length).toLowerCase();
    });
    return joinTexts(parts, "");
  });
}

function indent(value: Value, [width = 4, first = false, blank = false]: readonly (Value | undefined)[]): Value {
  const text = asString(value);
  if (text === undefined) {
    requireDefined(value);
    throw new Error(`unsupported operand type(s) for +=: '${getPythonType(value)}' and 'str'`);
  }
  const prefix = asString(width) ?? repeatText(" ", requireIndex(width));
  const lines = splitLines(`${text}\n`, false);
  checkTextLength(lines.length * prefix.length);
  const indented = lines.map((line, i) =>
    (i > 0 || isTruthy(first)) && (i === 0 || isTruthy(blank) || line !== "") ? prefix + line : line,
  );
  return mapText(value, joinTexts(indented, "\n"));
}

function truncate(value: Value, args: readonly (Value | undefined)[]): Value {
  const [length = 255, killWords = false, end = "...", leeway] = args;
  const [limit, ending] = [requireIndex(length), asString(end) ?? ""];
  const slack = leeway === undefined || leeway === null ? 5 : requireIndex(leeway);
  if (limit < countCharacters(ending)) throw new Error(`expected length >= ${countCharacters(ending)}, got ${limit}`);
  if (slack < 0) throw new Error(`expected leeway >= 0, got ${slack}`);
  if (getLength(value) <= limit + slack) return value;
  const text = asString(value);
  if (text === undefined) throw new Error(`'${getPythonType(value)}' object cannot be truncated`);
  const cut = sliceCharacters(text, 0, limit - countCharacters(ending));
  const kept = isTruthy(killWords) ? cut : rightSplit(cut, " ", 1)[0];
  return value instanceof Markup ? new Markup(kept + escapeMarkup(end).text) : kept + ending;
}

function replace(
  value: Value,
  [old = null, replacement = null, count]: readonly (Value | undefined)[],
  autoescape: boolean,
): Value {
  const limit = count === undefined || count === null ? -1 : requireIndex(count);
  if (!autoescape) return replaceText(toPythonString(value), toPythonString(old), toPythonString(replacement), limit);
  const isMarkup = value instanceof Markup || old instanceof Markup || replacement instanceof Markup;
  const text = isMarkup ? escapeMarkup(value).text : toPythonString(value);
  const added = isMarkup ? escapeMarkup(replacement).text : toPythonString(replacement);
  const replaced = replaceText(text, toPythonString(old), added, limit);
  return isMarkup ? new Markup(replaced) : replaced;
}

function quoteUrl(value: Value, isQuery: boolean): string {
  return rewriteMarked(toPythonString(value), (text) => {
    const parts = Array.from(new TextEncoder().encode(text), (byte) => {
      const character = String.fromCharCode(byte);
      if (/[\w.~-]/.test(character) || (character === "/" && !isQuery)) return character;
      return character === " " && isQuery ? "+" : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
    });
    return joinTexts(parts, "");
  });
}

function encodeUrl(value: Value): Value {
  if (asString(value) !== undefined || !isIterable(value)) return quoteUrl(value, false);
  const pairs = value instanceof PythonDict ? value.entries() : iterate(value).map(iterate);
  return joinTexts(
    pairs.map((pair) => {
      if (pair.length !== 2) throw new Error(`expected pairs to unpack, got ${pair.length} values`);
      return `${quoteUrl(pair[0], true)}=${quoteUrl(pair[1], true)}`;
    }),
    "&",
  );
}

function formatAttributes(
  value: Value,
  [autospace = true]: readonly (Value | undefined)[],
  autoescape: boolean,
): Value {
  if (!(value instanceof PythonDict)) {
    requireDefined(value);
    throw new Error(`'${getPythonType(value)}' object has no attribute 'items'`);
  }
  const parts = value.entries().flatMap(([key, item]) => {
    if (item === null || item instanceof Undefined) return [];
    const name = asString(key);
    if (name === undefined) throw new Error("expected string or bytes-like object");
    if (/[ \t-\r/>=]/.test(unmarked(name))) throw new Error(`Invalid character in attribute name: '${name}'`);
    return [`${escapeMarkup(key).text}="${escapeMarkup(item).text}"`];
  });
  const text = (isTruthy(autospace) && parts.length > 0 ? " " : "") + joinTexts(parts, " ");
  return autoescape ? new Markup(text) : text;
}

function formatFileSize(value: Value, [binary = false]: readonly (Value | undefined)[]): Value {
  const size = asNumber(value) ?? parseFloatText((asPlainString(value) ?? "").trim());
  requireDefined(value);
  if (size === undefined) throw new Error("could not convert the value to float");
  const base = isTruthy(binary) ? 1024 : 1000;
  if (size === 1) return "1 Byte";
  if (size < base) return `${Math.trunc(size)} Bytes`;
  const letters = "KMGTPEZY";
  let index = 0;
  while (index < letters.length - 1 && size >= base ** (index + 2)) index++;
  const letter = base === 1000 && index === 0 ? "k" : letters[index];
  return `${((base * size) / base ** (index + 2)).toFixed(1)} ${letter}${base === 1024 ? "i" : ""}B`;
}

function format(value: Value, args: Parameters<FilterFunction>[1]): Value {
  if (args.positional.length > 0 && args.named.size > 0)
    throw new Error("can't handle positional and keyword arguments at the same time");
  return applyOperator(
    "%",
    softString(value),
    args.named.size > 0 ? new PythonDict(args.named) : new PythonTuple(args.positional),
  );
}

function toJson(value: Value, args: readonly (Value | undefined)[]): Value {
  const [ensureAscii = false, indentation = null, separators = null, sortKeys = false] = args;
  const width = asNumber(indentation);
  const pair = listItems(separators)?.map(toPythonString);
  if (separators !== null && pair?.length !== 2) throw new Error("separators must be a pair");
  return toPythonJson(value, {
    ensureAscii: isTruthy(ensureAscii),
    indent: width === undefined ? asString(indentation) : repeatText(" ", width),
    separators: pair && [pair[0], pair[1]],
    sortKeys: isTruthy(sortKeys),
  });
}

/** Filters of texts. */
export const textFilters: ReadonlyMap<string, FilterFunction> = new Map<string, FilterFunction>([
  ["trim", methodFilter("strip", ["chars="])],
  ["upper", methodFilter("upper", [])],
  ["lower", methodFilter("lower", [])],
  ["capitalize", methodFilter("capitalize", [])],
  ["center", methodFilter("center", ["width="], [80])],
  ["title", defineFilter([], titleWords)],
  ["string", defineFilter([], softString)],
  ["safe", defineFilter([], (value) => new Markup(toPythonString(value)))],
  ["e", defineFilter([], escapeMarkup)],
  ["escape", defineFilter([], escapeMarkup)],
  ["forceescape", defineFilter([], forceEscape)],
  ["striptags", defineFilter([], (value) => stripTags(toPythonString(value)))],
  [
    "replace",
    defineFilter(["old", "new", "count="], (value, args, { autoescape }) => replace(value, args, autoescape)),
  ],
  ["indent", defineFilter(["width=", "first=", "blank="], indent)],
  ["truncate", defineFilter(["length=", "killwords=", "end=", "leeway="], truncate)],
  ["wordcount", defineFilter([], (value) => unmarked(toPythonString(value)).match(/[\p{L}\p{N}_]+/gu)?.length ?? 0)],
  ["format", format],
  ["urlencode", defineFilter([], encodeUrl)],
  ["xmlattr", defineFilter(["autospace="], (value, args, { autoescape }) => formatAttributes(value, args, autoescape))],
  ["filesizeformat", defineFilter(["binary="], formatFileSize)],
  ["tojson", defineFilter(["ensure_ascii=", "indent=", "separators=", "sort_keys="], toJson)],
]);
