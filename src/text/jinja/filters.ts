import type { Value } from "@huggingface/jinja";

import { compare, subscript } from "./operators.js";
import { pythonJson, pythonString } from "./python-text.js";
import { type CallArguments, capitalize, replaceText, strip, titleCase } from "./string-methods.js";
import { templateTests } from "./tests.js";
import {
  contentOf,
  dictEntries,
  equal,
  isTrue,
  isUndefined,
  iterate,
  listItems,
  listValue,
  numberOf,
  numberValue,
  pythonType,
  stringOf,
  toValue,
  tupleValue,
} from "./values.js";

type Filter = (value: Value, args: CallArguments) => Value;

/** The filters that templates may use, with Jinja's behaviour, and Transformers' `tojson`. */
export const templateFilters: ReadonlyMap<string, Filter> = new Map<string, Filter>([
  ["trim", (value, args) => toValue(strip(pythonString(value), stringOf(argument(args, 0, "chars"))))],
  ["upper", (value) => toValue(pythonString(value).toUpperCase())],
  ["lower", (value) => toValue(pythonString(value).toLowerCase())],
  ["capitalize", (value) => toValue(capitalize(pythonString(value)))],
  ["title", (value) => toValue(titleCase(pythonString(value)))],
  ["string", (value) => toValue(pythonString(value))],
  ["safe", (value) => value],
  ["e", escapeMarkup],
  ["escape", escapeMarkup],
  ["length", length],
  ["count", length],
  ["default", fallback],
  ["d", fallback],
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
  ["min", (value) => sorted(iterate(value), {})[0] ?? toValue(undefined)],
  ["max", (value) => sorted(iterate(value), {}).at(-1) ?? toValue(undefined)],
  ["sum", sum],
  ["int", (value, args) => toInteger(value, argument(args, 0, "default"))],
  ["float", (value, args) => toFloat(value, argument(args, 0, "default"))],
  ["abs", (value) => numberValue(Math.abs(numberOf(value) ?? 0), contentOf(value, "FloatValue") !== undefined)],
  ["round", round],
  ["replace", replace],
  ["indent", indent],
  ["wordcount", (value) => toValue(pythonString(value).match(/[\p{L}\p{N}_]+/gu)?.length ?? 0)],
  ["tojson", toJson],
]);

/** A filter's argument by its place or its name. */
function argument({ positional, named }: CallArguments, index: number, name: string): Value | undefined {
  return positional[index] ?? named.get(name);
}

function flag(args: CallArguments, index: number, name: string): boolean {
  const value = argument(args, index, name);
  return value !== undefined && isTrue(value);
}

function length(value: Value): Value {
  const size = dictEntries(value)?.size;
  if (size === undefined && numberOf(value) !== undefined) {
    throw new Error(`object of type '${pythonType(value)}' has no len()`);
  }
  return toValue(size ?? iterate(value).length);
}

function fallback(value: Value, args: CallArguments): Value {
  const missing = isUndefined(value) || (flag(args, 1, "boolean") && !isTrue(value));
  return missing ? (argument(args, 0, "default_value") ?? toValue("")) : value;
}

function items(value: Value): Value {
  if (isUndefined(value)) return listValue([]);
  const entries = dictEntries(value);
  if (!entries) throw new Error("Can only get item pairs from a mapping.");
  return listValue(Array.from(entries, ([key, item]) => tupleValue([toValue(key), item])));
}

function reverse(value: Value): Value {
  const text = stringOf(value);
  if (text !== undefined) return toValue(Array.from(text).reverse().join(""));
  return listValue(iterate(value).slice().reverse());
}

/** What map, select and their like go through; nothing for None and other values that count as false. */
function elements(value: Value): Value[] {
  return isTrue(value) ? iterate(value) : [];
}

function attributeOf(item: Value, path: Value): Value {
  const text = pythonString(path);
  return text.split(".").reduce((current, part) => {
    const index = /^\d+$/.test(part) && listItems(current) ? toValue(Number(part)) : toValue(part);
    return subscript(current, index);
  }, item);
}

function join(value: Value, args: CallArguments): Value {
  const attribute = argument(args, 1, "attribute");
  const parts = iterate(value).map((item) => pythonString(attribute ? attributeOf(item, attribute) : item));
  return toValue(parts.join(pythonString(argument(args, 0, "d") ?? toValue(""))));
}

function map(value: Value, { positional, named }: CallArguments): Value {
  const attribute = named.get("attribute");
  if (attribute) {
    const missing = named.get("default");
    return listValue(
      elements(value).map((item) => {
        const found = attributeOf(item, attribute);
        return isUndefined(found) && missing ? missing : found;
      }),
    );
  }
  const name = stringOf(positional[0]) ?? "";
  const filter = templateFilters.get(name);
  if (!filter) throw new Error(`No filter named '${name}'.`);
  const rest: CallArguments = { positional: positional.slice(1), named };
  return listValue(elements(value).map((item) => filter(item, rest)));
}

function testNamed(name: Value | undefined): (value: Value, other: Value | undefined) => boolean {
  if (!name) return isTrue;
  const test = templateTests.get(stringOf(name) ?? "");
  if (!test) throw new Error(`No test named '${pythonString(name)}'.`);
  return test;
}

function select(value: Value, { positional }: CallArguments, wanted: boolean): Value {
  const test = testNamed(positional[0]);
  return listValue(elements(value).filter((item) => test(item, positional[1]) === wanted));
}

function selectAttribute(value: Value, { positional }: CallArguments, wanted: boolean): Value {
  const [attribute, name, other] = positional;
  if (!attribute) throw new Error("selectattr needs the name of an attribute");
  const test = testNamed(name);
  return listValue(elements(value).filter((item) => test(attributeOf(item, attribute), other) === wanted));
}

function unique(value: Value): Value {
  const seen: Value[] = [];
  for (const item of iterate(value)) if (!seen.some((other) => equal(folded(item), folded(other)))) seen.push(item);
  return listValue(seen);
}

/** Jinja compares strings without case unless asked. */
function folded(value: Value): Value {
  const text = stringOf(value);
  return text === undefined ? value : toValue(text.toLowerCase());
}

function sorted(
  list: readonly Value[],
  how: { attribute?: Value; caseSensitive?: boolean; reverse?: boolean },
): Value[] {
  const key = (item: Value) => {
    const value = how.attribute ? attributeOf(item, how.attribute) : item;
    return how.caseSensitive ? value : folded(value);
  };
  return list.slice().sort((a, b) => (how.reverse ? -1 : 1) * compare(key(a), key(b)));
}

function sort(value: Value, args: CallArguments): Value {
  return listValue(
    sorted(iterate(value), {
      reverse: flag(args, 0, "reverse"),
      caseSensitive: flag(args, 1, "case_sensitive"),
      attribute: argument(args, 2, "attribute"),
    }),
  );
}

function sum(value: Value, args: CallArguments): Value {
  const attribute = argument(args, 0, "attribute");
  const list = iterate(value).map((item) => (attribute ? attributeOf(item, attribute) : item));
  const start = argument(args, 1, "start");
  const all = start ? [start, ...list] : list;
  const float = all.some((item) => contentOf(item, "FloatValue") !== undefined);
  return numberValue(
    all.reduce((total, item) => total + (numberOf(item) ?? 0), 0),
    float,
  );
}

function toInteger(value: Value, missing: Value | undefined): Value {
  const number = numberOf(value);
  if (number !== undefined) return toValue(Math.trunc(number));
  const text = strip(stringOf(value) ?? "", undefined);
  return /^[+-]?\d+(\.\d*)?$/.test(text) ? toValue(Math.trunc(Number(text))) : (missing ?? toValue(0));
}

function toFloat(value: Value, missing: Value | undefined): Value {
  const text = strip(stringOf(value) ?? "", undefined);
  const number = numberOf(value) ?? (text === "" ? Number.NaN : Number(text));
  return Number.isNaN(number) ? (missing ?? numberValue(0, true)) : numberValue(number, true);
}

function round(value: Value, args: CallArguments): Value {
  const scale = 10 ** (numberOf(argument(args, 0, "precision")) ?? 0);
  const scaled = (numberOf(value) ?? 0) * scale;
  const method = stringOf(argument(args, 1, "method")) ?? "common";
  if (method === "ceil") return numberValue(Math.ceil(scaled) / scale, true);
  if (method === "floor") return numberValue(Math.floor(scaled) / scale, true);
  // Python rounds halves to the even neighbour.
  const down = Math.floor(scaled);
  const half = scaled - down === 0.5;
  const nearest = half ? down + (down % 2 === 0 ? 0 : 1) : Math.round(scaled);
  return numberValue(nearest / scale, true);
}

function replace(value: Value, args: CallArguments): Value {
  const [old, replacement] = [argument(args, 0, "old"), argument(args, 1, "new")];
  if (!old || !replacement) throw new Error("replace needs what to replace and what with");
  const count = numberOf(argument(args, 2, "count")) ?? -1;
  return toValue(replaceText(pythonString(value), pythonString(old), pythonString(replacement), count));
}

function indent(value: Value, args: CallArguments): Value {
  const width = argument(args, 0, "width");
  const prefix = stringOf(width) ?? " ".repeat(numberOf(width) ?? 4);
  const first = flag(args, 1, "first");
  const blank = flag(args, 2, "blank");
  const lines = pythonString(value).split(/\r\n|\r|\n/);
  return toValue(
    lines.map((line, i) => ((i > 0 || first) && (blank || line !== "") ? prefix + line : line)).join("\n"),
  );
}

function escapeMarkup(value: Value): Value {
  const marks: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&#34;", "'": "&#39;" };
  return toValue(pythonString(value).replace(/[&<>"']/g, (mark) => marks[mark]));
}

function toJson(value: Value, args: CallArguments): Value {
  const indentation = argument(args, 1, "indent");
  const width = numberOf(indentation);
  const separators = listItems(argument(args, 2, "separators"))?.map(pythonString);
  return toValue(
    pythonJson(value, {
      ensureAscii: flag(args, 0, "ensure_ascii"),
      indent: width === undefined ? stringOf(indentation) : " ".repeat(width),
      separators: separators && [separators[0], separators[1]],
      sortKeys: flag(args, 3, "sort_keys"),
    }),
  );
}
