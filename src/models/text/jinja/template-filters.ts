import { contentMarks, convertMarked, unmarked } from "./content-marks.js";
import { checkTextLength, joinTexts, repeatText, spendText } from "./limits.js";
import { subscript } from "./operators.js";
import { toPythonJson, toPythonString } from "./python-text.js";
import { capitalize, replaceText, splitAtMatches, strip, titleCase } from "./string-methods.js";
import { templateTests } from "./template-tests.js";
import {
  type CallArguments,
  Float,
  Tuple,
  Undefined,
  type Value,
  asNumber,
  asString,
  callMeasured,
  compare,
  countCharacters,
  dictEntries,
  getPythonType,
  isEqual,
  isTruthy,
  iterate,
  listItems,
  toNumber,
} from "./values.js";

type Filter = (value: Value, args: CallArguments) => Value;

/** Filters with Jinja's behavior, and Transformers' `tojson`. */
const templateFilters: ReadonlyMap<string, Filter> = new Map<string, Filter>([
  ["trim", (value, args) => strip(toPythonString(value), asString(getArgument(args, 0, "chars")))],
  ["upper", (value) => convertMarked(toPythonString(value), (text) => text.toUpperCase())],
  ["lower", (value) => convertMarked(toPythonString(value), (text) => text.toLowerCase())],
  ["capitalize", (value) => capitalize(toPythonString(value))],
  ["title", (value) => titleCase(toPythonString(value))],
  ["string", toPythonString],
  ["safe", (value) => value],
  ["e", escapeMarkup],
  ["escape", escapeMarkup],
  ["length", getLength],
  ["count", getLength],
  ["default", applyDefault],
  ["d", applyDefault],
  ["first", (value) => iterate(value)[0] ?? new Undefined()],
  ["last", (value) => iterate(value).at(-1) ?? new Undefined()],
  ["list", iterate],
  ["items", getItems],
  ["dictsort", sortDict],
  ["reverse", reverse],
  ["join", join],
  ["map", map],
  ["select", (value, args) => select(value, args, true)],
  ["reject", (value, args) => select(value, args, false)],
  ["selectattr", (value, args) => selectAttribute(value, args, true)],
  ["rejectattr", (value, args) => selectAttribute(value, args, false)],
  ["unique", unique],
  ["sort", sort],
  ["min", (value) => sortValues(iterate(value), {})[0] ?? new Undefined()],
  ["max", (value) => sortValues(iterate(value), {}).at(-1) ?? new Undefined()],
  ["sum", sum],
  ["int", (value, args) => toInteger(value, getArgument(args, 0, "default"))],
  ["float", (value, args) => toFloat(value, getArgument(args, 0, "default"))],
  ["abs", (value) => toNumber(Math.abs(asNumber(value) ?? 0), value instanceof Float)],
  ["round", round],
  ["replace", replace],
  ["indent", indent],
  ["wordcount", (value) => unmarked(toPythonString(value)).match(/[\p{L}\p{N}_]+/gu)?.length ?? 0],
  ["tojson", toJson],
]);

export function applyFilter(name: string, value: Value, { positional, named }: CallArguments): Value {
  const filter = templateFilters.get(name);
  if (!filter) throw new Error(`No filter named '${name}'.`);
  const args: CallArguments = { positional: [value, ...positional], named };
  return callMeasured(() => filter(value, { positional, named }), args);
}

/** Returns a filter's argument by position or name. */
function getArgument({ positional, named }: CallArguments, index: number, name: string): Value | undefined {
  return positional[index] ?? named.get(name);
}

function getFlag(args: CallArguments, index: number, name: string): boolean {
  const value = getArgument(args, index, name);
  return value !== undefined && isTruthy(value);
}

function getLength(value: Value): Value {
  const size = dictEntries(value)?.size;
  if (size === undefined && asNumber(value) !== undefined)
    throw new Error(`object of type '${getPythonType(value)}' has no len()`);
  return size ?? (typeof value === "string" ? countCharacters(value) : iterate(value).length);
}

function applyDefault(value: Value, args: CallArguments): Value {
  const missing = value instanceof Undefined || (getFlag(args, 1, "boolean") && !isTruthy(value));
  return missing ? (getArgument(args, 0, "default_value") ?? "") : value;
}

function getItems(value: Value): Value[] {
  if (value instanceof Undefined) return [];
  const entries = dictEntries(value);
  if (!entries) throw new Error("Can only get item pairs from a mapping.");
  return Array.from(entries, (entry) => new Tuple(entry));
}

function sortDict(value: Value, args: CallArguments): Value {
  const by = asString(getArgument(args, 1, "by")) === "value" ? 1 : 0;
  const caseSensitive = getFlag(args, 0, "case_sensitive");
  return sortValues(getItems(value), { attribute: by, caseSensitive, reverse: getFlag(args, 2, "reverse") });
}

function reverse(value: Value): Value {
  const items = iterate(value).toReversed();
  return typeof value === "string" ? joinTexts(items.map(toPythonString), "") : items;
}

/** Returns the items that map, select etc. iterate over; none for falsy values. */
function iterateIfTruthy(value: Value): readonly Value[] {
  return isTruthy(value) ? iterate(value) : [];
}

function getAttribute(item: Value, path: Value): Value {
  const text = toPythonString(path);
  spendText(text.length);
  return text.split(".").reduce((current, part) => {
    return subscript(current, /^\d+$/.test(part) && listItems(current) ? Number(part) : part);
  }, item);
}

function join(value: Value, args: CallArguments): Value {
  const attribute = getArgument(args, 1, "attribute");
  const parts = iterate(value).map((item) => toPythonString(attribute ? getAttribute(item, attribute) : item));
  return joinTexts(parts, toPythonString(getArgument(args, 0, "d") ?? ""));
}

function map(value: Value, { positional, named }: CallArguments): Value {
  const attribute = named.get("attribute");
  if (attribute) {
    const missing = named.get("default");
    return iterateIfTruthy(value).map((item) => {
      const found = getAttribute(item, attribute);
      return found instanceof Undefined && missing !== undefined ? missing : found;
    });
  }
  const name = asString(positional[0]) ?? "";
  const rest: CallArguments = { positional: positional.slice(1), named };
  return iterateIfTruthy(value).map((item) => applyFilter(name, item, rest));
}

function findTest(name: Value | undefined): (value: Value, other: Value | undefined) => boolean {
  if (name === undefined) return isTruthy;
  const test = templateTests.get(asString(name) ?? "");
  if (!test) throw new Error(`No test named '${toPythonString(name)}'.`);
  return test;
}

function select(value: Value, { positional }: CallArguments, expected: boolean): Value {
  const test = findTest(positional[0]);
  return iterateIfTruthy(value).filter((item) => test(item, positional[1]) === expected);
}

function selectAttribute(value: Value, { positional }: CallArguments, expected: boolean): Value {
  const [attribute, name, other] = positional;
  if (attribute === undefined) throw new Error("selectattr requires an attribute name");
  const test = findTest(name);
  return iterateIfTruthy(value).filter((item) => test(getAttribute(item, attribute), other) === expected);
}

function unique(value: Value): Value {
  const seen: Value[] = [];
  for (const item of iterate(value)) {
    if (!seen.some((other) => isEqual(foldCase(item), foldCase(other)))) seen.push(item);
  }
  return seen;
}

/** Compares strings case-insensitively by default, as Jinja does. */
function foldCase(value: Value): Value {
  return typeof value === "string" ? unmarked(value).toLowerCase() : value;
}

function sortValues(
  list: readonly Value[],
  options: { attribute?: Value; caseSensitive?: boolean; reverse?: boolean },
): Value[] {
  const key = (item: Value) => {
    const value = options.attribute === undefined ? item : getAttribute(item, options.attribute);
    return options.caseSensitive ? value : foldCase(value);
  };
  return list.toSorted((a, b) => (options.reverse ? -1 : 1) * compare(key(a), key(b)));
}

function sort(value: Value, args: CallArguments): Value {
  return sortValues(iterate(value), {
    reverse: getFlag(args, 0, "reverse"),
    caseSensitive: getFlag(args, 1, "case_sensitive"),
    attribute: getArgument(args, 2, "attribute"),
  });
}

function sum(value: Value, args: CallArguments): Value {
  const attribute = getArgument(args, 0, "attribute");
  const items = iterate(value).map((item) => (attribute ? getAttribute(item, attribute) : item));
  const start = getArgument(args, 1, "start");
  const all = start === undefined ? items : [start, ...items];
  const total = all.reduce((subtotal: number, item) => subtotal + (asNumber(item) ?? 0), 0);
  return toNumber(
    total,
    all.some((item) => item instanceof Float),
  );
}

function toInteger(value: Value, missing: Value | undefined): Value {
  const number = asNumber(value);
  if (number !== undefined) return toNumber(Math.trunc(number), false);
  const text = strip(unmarked(asString(value) ?? ""), undefined);
  return /^[+-]?\d+(\.\d*)?$/.test(text) ? toNumber(Math.trunc(Number(text)), false) : (missing ?? 0);
}

function toFloat(value: Value, missing: Value | undefined): Value {
  const text = strip(unmarked(asString(value) ?? ""), undefined);
  const number = asNumber(value) ?? (text === "" ? Number.NaN : Number(text));
  return Number.isNaN(number) ? (missing ?? new Float(0)) : new Float(number);
}

function round(value: Value, args: CallArguments): Value {
  const scale = 10 ** (asNumber(getArgument(args, 0, "precision")) ?? 0);
  const scaled = (asNumber(value) ?? 0) * scale;
  const method = asString(getArgument(args, 1, "method")) ?? "common";
  if (method === "ceil") return new Float(Math.ceil(scaled) / scale);
  if (method === "floor") return new Float(Math.floor(scaled) / scale);
  // Python rounds halves to even.
  const down = Math.floor(scaled);
  const half = scaled - down === 0.5;
  const nearest = half ? down + (down % 2 === 0 ? 0 : 1) : Math.round(scaled);
  return new Float(nearest / scale);
}

function replace(value: Value, args: CallArguments): Value {
  const [old, replacement] = [getArgument(args, 0, "old"), getArgument(args, 1, "new")];
  if (old === undefined || replacement === undefined) throw new Error("replace requires the old and the new text");
  const count = asNumber(getArgument(args, 2, "count")) ?? -1;
  return replaceText(toPythonString(value), toPythonString(old), toPythonString(replacement), count);
}

function indent(value: Value, args: CallArguments): Value {
  const width = getArgument(args, 0, "width");
  const prefix = asString(width) ?? repeatText(" ", asNumber(width) ?? 4);
  const first = getFlag(args, 1, "first");
  const blank = getFlag(args, 2, "blank");
  const lines = splitAtMatches(toPythonString(value), /\r\n|\r|\n/g);
  checkTextLength(lines.length * prefix.length);
  return joinTexts(
    lines.map((line, i) => ((i > 0 || first) && (blank || line !== "") ? prefix + line : line)),
    "\n",
  );
}

function escapeMarkup(value: Value): Value {
  const marks: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&#34;", "'": "&#39;" };
  const text = contentMarks().restore(toPythonString(value), (character) => character in marks);
  return text.replace(/[&<>"']/g, (mark) => marks[mark]);
}

function toJson(value: Value, args: CallArguments): Value {
  const indentation = getArgument(args, 1, "indent");
  const width = asNumber(indentation);
  const separators = listItems(getArgument(args, 2, "separators"))?.map(toPythonString);
  return toPythonJson(value, {
    ensureAscii: getFlag(args, 0, "ensure_ascii"),
    indent: width === undefined ? asString(indentation) : repeatText(" ", width),
    separators: separators && [separators[0] ?? "", separators[1] ?? ""],
    sortKeys: getFlag(args, 3, "sort_keys"),
  });
}
