import type { Value } from "@huggingface/jinja";

import { compare, subscript } from "./operators.js";
import { toPythonJson, toPythonString } from "./python-text.js";
import { type CallArguments, capitalize, replaceText, strip, titleCase } from "./string-methods.js";
import { templateTests } from "./template-tests.js";
import {
  getContent,
  dictEntries,
  isEqual,
  isTruthy,
  isUndefined,
  iterate,
  listItems,
  listValue,
  asNumber,
  numberValue,
  getPythonType,
  asString,
  toValue,
  tupleValue,
} from "./values.js";

type Filter = (value: Value, args: CallArguments) => Value;

/** Filters with Jinja's behavior, and Transformers' `tojson`. */
export const templateFilters: ReadonlyMap<string, Filter> = new Map<string, Filter>([
  ["trim", (value, args) => toValue(strip(toPythonString(value), asString(getArgument(args, 0, "chars"))))],
  ["upper", (value) => toValue(toPythonString(value).toUpperCase())],
  ["lower", (value) => toValue(toPythonString(value).toLowerCase())],
  ["capitalize", (value) => toValue(capitalize(toPythonString(value)))],
  ["title", (value) => toValue(titleCase(toPythonString(value)))],
  ["string", (value) => toValue(toPythonString(value))],
  ["safe", (value) => value],
  ["e", escapeMarkup],
  ["escape", escapeMarkup],
  ["length", getLength],
  ["count", getLength],
  ["default", applyDefault],
  ["d", applyDefault],
  ["first", (value) => iterate(value)[0] ?? toValue(undefined)],
  ["last", (value) => iterate(value).at(-1) ?? toValue(undefined)],
  ["list", (value) => listValue(iterate(value))],
  ["items", items],
  ["reverse", (value) => reverse(value)],
  ["join", join],
  ["map", map],
  ["select", (value, args) => select(value, args, true)],
  ["reject", (value, args) => select(value, args, false)],
  ["selectattr", (value, args) => selectAttribute(value, args, true)],
  ["rejectattr", (value, args) => selectAttribute(value, args, false)],
  ["unique", unique],
  ["sort", sort],
  ["min", (value) => sortValues(iterate(value), {})[0] ?? toValue(undefined)],
  ["max", (value) => sortValues(iterate(value), {}).at(-1) ?? toValue(undefined)],
  ["sum", sum],
  ["int", (value, args) => toInteger(value, getArgument(args, 0, "default"))],
  ["float", (value, args) => toFloat(value, getArgument(args, 0, "default"))],
  ["abs", (value) => numberValue(Math.abs(asNumber(value) ?? 0), getContent(value, "FloatValue") !== undefined)],
  ["round", round],
  ["replace", replace],
  ["indent", indent],
  ["wordcount", (value) => toValue(toPythonString(value).match(/[\p{L}\p{N}_]+/gu)?.length ?? 0)],
  ["tojson", toJson],
]);

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
  if (size === undefined && asNumber(value) !== undefined) {
    throw new Error(`object of type '${getPythonType(value)}' has no len()`);
  }
  return toValue(size ?? iterate(value).length);
}

function applyDefault(value: Value, args: CallArguments): Value {
  const missing = isUndefined(value) || (getFlag(args, 1, "boolean") && !isTruthy(value));
  return missing ? (getArgument(args, 0, "default_value") ?? toValue("")) : value;
}

function items(value: Value): Value {
  if (isUndefined(value)) return listValue([]);
  const entries = dictEntries(value);
  if (!entries) throw new Error("Can only get item pairs from a mapping.");
  return listValue(Array.from(entries, ([key, item]) => tupleValue([toValue(key), item])));
}

function reverse(value: Value): Value {
  const text = asString(value);
  if (text !== undefined) return toValue(Array.from(text).reverse().join(""));
  return listValue(iterate(value).slice().reverse());
}

/** Returns the items that map, select etc. iterate over; none for falsy values. */
function iterateIfTruthy(value: Value): Value[] {
  return isTruthy(value) ? iterate(value) : [];
}

function getAttribute(item: Value, path: Value): Value {
  const text = toPythonString(path);
  return text.split(".").reduce((current, part) => {
    const index = /^\d+$/.test(part) && listItems(current) ? toValue(Number(part)) : toValue(part);
    return subscript(current, index);
  }, item);
}

function join(value: Value, args: CallArguments): Value {
  const attribute = getArgument(args, 1, "attribute");
  const parts = iterate(value).map((item) => toPythonString(attribute ? getAttribute(item, attribute) : item));
  return toValue(parts.join(toPythonString(getArgument(args, 0, "d") ?? toValue(""))));
}

function map(value: Value, { positional, named }: CallArguments): Value {
  const attribute = named.get("attribute");
  if (attribute) {
    const missing = named.get("default");
    return listValue(
      iterateIfTruthy(value).map((item) => {
        const found = getAttribute(item, attribute);
        return isUndefined(found) && missing ? missing : found;
      }),
    );
  }
  const name = asString(positional[0]) ?? "";
  const filter = templateFilters.get(name);
  if (!filter) throw new Error(`No filter named '${name}'.`);
  const rest: CallArguments = { positional: positional.slice(1), named };
  return listValue(iterateIfTruthy(value).map((item) => filter(item, rest)));
}

function findTest(name: Value | undefined): (value: Value, other: Value | undefined) => boolean {
  if (!name) return isTruthy;
  const test = templateTests.get(asString(name) ?? "");
  if (!test) throw new Error(`No test named '${toPythonString(name)}'.`);
  return test;
}

function select(value: Value, { positional }: CallArguments, expected: boolean): Value {
  const test = findTest(positional[0]);
  return listValue(iterateIfTruthy(value).filter((item) => test(item, positional[1]) === expected));
}

function selectAttribute(value: Value, { positional }: CallArguments, expected: boolean): Value {
  const [attribute, name, other] = positional;
  if (!attribute) throw new Error("selectattr requires an attribute name");
  const test = findTest(name);
  return listValue(iterateIfTruthy(value).filter((item) => test(getAttribute(item, attribute), other) === expected));
}

function unique(value: Value): Value {
  const seen: Value[] = [];
  for (const item of iterate(value))
    if (!seen.some((other) => isEqual(foldCase(item), foldCase(other)))) seen.push(item);
  return listValue(seen);
}

/** Compares strings case-insensitively by default, as Jinja does. */
function foldCase(value: Value): Value {
  const text = asString(value);
  return text === undefined ? value : toValue(text.toLowerCase());
}

function sortValues(
  list: readonly Value[],
  options: { attribute?: Value; caseSensitive?: boolean; reverse?: boolean },
): Value[] {
  const key = (item: Value) => {
    const value = options.attribute ? getAttribute(item, options.attribute) : item;
    return options.caseSensitive ? value : foldCase(value);
  };
  return list.slice().sort((a, b) => (options.reverse ? -1 : 1) * compare(key(a), key(b)));
}

function sort(value: Value, args: CallArguments): Value {
  return listValue(
    sortValues(iterate(value), {
      reverse: getFlag(args, 0, "reverse"),
      caseSensitive: getFlag(args, 1, "case_sensitive"),
      attribute: getArgument(args, 2, "attribute"),
    }),
  );
}

function sum(value: Value, args: CallArguments): Value {
  const attribute = getArgument(args, 0, "attribute");
  const list = iterate(value).map((item) => (attribute ? getAttribute(item, attribute) : item));
  const start = getArgument(args, 1, "start");
  const all = start ? [start, ...list] : list;
  const float = all.some((item) => getContent(item, "FloatValue") !== undefined);
  return numberValue(
    all.reduce((total, item) => total + (asNumber(item) ?? 0), 0),
    float,
  );
}

function toInteger(value: Value, missing: Value | undefined): Value {
  const number = asNumber(value);
  if (number !== undefined) return toValue(Math.trunc(number));
  const text = strip(asString(value) ?? "", undefined);
  return /^[+-]?\d+(\.\d*)?$/.test(text) ? toValue(Math.trunc(Number(text))) : (missing ?? toValue(0));
}

function toFloat(value: Value, missing: Value | undefined): Value {
  const text = strip(asString(value) ?? "", undefined);
  const number = asNumber(value) ?? (text === "" ? Number.NaN : Number(text));
  return Number.isNaN(number) ? (missing ?? numberValue(0, true)) : numberValue(number, true);
}

function round(value: Value, args: CallArguments): Value {
  const scale = 10 ** (asNumber(getArgument(args, 0, "precision")) ?? 0);
  const scaled = (asNumber(value) ?? 0) * scale;
  const method = asString(getArgument(args, 1, "method")) ?? "common";
  if (method === "ceil") return numberValue(Math.ceil(scaled) / scale, true);
  if (method === "floor") return numberValue(Math.floor(scaled) / scale, true);
  // Python rounds halves to even.
  const down = Math.floor(scaled);
  const half = scaled - down === 0.5;
  const nearest = half ? down + (down % 2 === 0 ? 0 : 1) : Math.round(scaled);
  return numberValue(nearest / scale, true);
}

function replace(value: Value, args: CallArguments): Value {
  const [old, replacement] = [getArgument(args, 0, "old"), getArgument(args, 1, "new")];
  if (!old || !replacement) throw new Error("replace requires the old and the new text");
  const count = asNumber(getArgument(args, 2, "count")) ?? -1;
  return toValue(replaceText(toPythonString(value), toPythonString(old), toPythonString(replacement), count));
}

function indent(value: Value, args: CallArguments): Value {
  const width = getArgument(args, 0, "width");
  const prefix = asString(width) ?? " ".repeat(asNumber(width) ?? 4);
  const first = getFlag(args, 1, "first");
  const blank = getFlag(args, 2, "blank");
  const lines = toPythonString(value).split(/\r\n|\r|\n/);
  return toValue(
    lines.map((line, i) => ((i > 0 || first) && (blank || line !== "") ? prefix + line : line)).join("\n"),
  );
}

function escapeMarkup(value: Value): Value {
  const marks: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&#34;", "'": "&#39;" };
  return toValue(toPythonString(value).replace(/[&<>"']/g, (mark) => marks[mark]));
}

function toJson(value: Value, args: CallArguments): Value {
  const indentation = getArgument(args, 1, "indent");
  const width = asNumber(indentation);
  const separators = listItems(getArgument(args, 2, "separators"))?.map(toPythonString);
  return toValue(
    toPythonJson(value, {
      ensureAscii: getFlag(args, 0, "ensure_ascii"),
      indent: width === undefined ? asString(indentation) : " ".repeat(width),
      separators: separators && [separators[0], separators[1]],
      sortKeys: getFlag(args, 3, "sort_keys"),
    }),
  );
}
