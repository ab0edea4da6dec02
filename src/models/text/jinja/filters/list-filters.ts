import { compare, isEqual } from "../comparison.js";
import { PythonDict, DictView, toHashable } from "../dict.js";
import { getIterator, getLength, isIterable, iterate, lazy } from "../iteration.js";
import { joinTexts, spendItems, spendText } from "../limits.js";
import { escapeMarkup } from "../markup.js";
import { getItem, getOnlyAttribute, slice } from "../members.js";
import { requireIndex } from "../numbers.js";
import { applyOperator } from "../operators.js";
import { toPythonString } from "../python-text.js";
import {
  Lazy,
  Markup,
  PythonRange,
  PythonTuple,
  Undefined,
  type Value,
  asPlainString,
  asString,
  getPythonType,
  isList,
  isTruthy,
  listItems,
  mapText,
  requireDefined,
} from "../values.js";
import { type FilterFunction, type FilterContext, defineFilter } from "./define-filter.js";

type Key = (item: Value) => Value;

/** Creates the reader of an attribute's path, such as "a.b.0"; no path is the item. */
function attributeReader(path: Value | undefined, missing?: Value): Key {
  if (path === undefined || path === null) return (item) => item;
  const text = asPlainString(path);
  const parts: readonly Value[] =
    text === undefined ? [path] : text.split(".").map((part) => (/^\p{Nd}+$/u.test(part) ? Number(part) : part));
  return (item) => {
    spendText(text?.length ?? 0);
    return parts.reduce<Value>((current, part) => {
      const found = getItem(current, part);
      return found instanceof Undefined && missing !== undefined && missing !== null ? missing : found;
    }, item);
  };
}

/** Folds the case of texts, as Jinja compares by default. */
const foldCase = (value: Value): Value => {
  const text = asPlainString(value);
  return text === undefined ? value : text.toLowerCase();
};

const keyReader = (path: Value | undefined, caseSensitive: Value, missing?: Value): Key => {
  const read = attributeReader(path, missing);
  return isTruthy(caseSensitive) ? read : (item) => foldCase(read(item));
};

/** Sorts items, stable in both directions. */
function sortBy(items: readonly Value[], key: Key, reverse: boolean): Value[] {
  const keyed = items.map((item) => ({ item, key: key(item) }));
  keyed.sort((a, b) => (reverse ? -1 : 1) * (compare(a.key, b.key) || 0));
  return keyed.map(({ item }) => item);
}

function sort(
  value: Value,
  [reverse = false, caseSensitive = false, attribute]: readonly (Value | undefined)[],
): Value {
  const paths: readonly (Value | undefined)[] = asPlainString(attribute)?.split(",") ?? [attribute];
  const keys = paths.map((path) => keyReader(path, caseSensitive));
  return sortBy(iterate(value), (item) => keys.map((key) => key(item)), isTruthy(reverse));
}

function sortDict(
  value: Value,
  [caseSensitive = false, by = "key", reverse = false]: readonly (Value | undefined)[],
): Value {
  if (by !== "key" && by !== "value") throw new Error('You can only sort by either "key" or "value"');
  requireDefined(value);
  if (!(value instanceof PythonDict)) throw new Error(`'${getPythonType(value)}' object has no attribute 'items'`);
  const key = keyReader(by === "key" ? 0 : 1, caseSensitive);
  return sortBy(new DictView(value, "items").toArray(), key, isTruthy(reverse));
}

function findExtreme(sign: number, name: string): FilterFunction {
  return defineFilter(["case_sensitive=", "attribute="], (value, [caseSensitive = false, attribute]) => {
    const key = keyReader(attribute, caseSensitive);
    const [first, ...rest] = iterate(value);
    if (first === undefined) return new Undefined("No aggregated item, sequence was empty.");
    return rest.reduce((best, item) => (sign * compare(key(item), key(best), name) < 0 ? item : best), first);
  });
}

function unique(value: Value, [caseSensitive = false, attribute]: readonly (Value | undefined)[]): Value {
  const key = keyReader(attribute, caseSensitive);
  return lazy(value, function* (items) {
    const seen = new Set<unknown>();
    for (const item of items) {
      const hash = toHashable(key(item));
      if (!seen.has(hash)) yield item;
      seen.add(hash);
    }
  });
}

function groupBy(
  value: Value,
  [attribute = null, missing, caseSensitive = false]: readonly (Value | undefined)[],
): Value {
  const key = keyReader(attribute, caseSensitive, missing);
  const original = attributeReader(attribute, missing);
  const groups: { key: Value; items: Value[] }[] = [];
  for (const item of sortBy(iterate(value), key, false)) {
    const last = groups.at(-1);
    if (last && isEqual(last.key, key(item))) last.items.push(item);
    else groups.push({ key: key(item), items: [item] });
  }
  return groups.map(({ items }) => new PythonTuple([original(items[0]), items], ["grouper", "list"]));
}

function join(value: Value, [separator = "", attribute]: readonly (Value | undefined)[], autoescape: boolean): Value {
  const items = iterate(value).map(attributeReader(attribute));
  const isMarkup = autoescape && [separator, ...items].some((item) => item instanceof Markup);
  const toText = (item: Value) => (isMarkup ? escapeMarkup(item).text : toPythonString(item));
  const text = joinTexts(items.map(toText), toText(separator));
  return isMarkup ? new Markup(text) : text;
}

function reverse(value: Value): Value {
  const text = asString(value);
  if (text !== undefined) return mapText(value, toPythonString(slice(text, [null, null, -1])));
  if (!isIterable(value)) throw new Error("argument must be iterable");
  const items = iterate(value).toReversed();
  if (value instanceof Lazy) return items;
  const type = isList(value) ? "list_reverseiterator" : value instanceof PythonRange ? "range_iterator" : "reversed";
  return new Lazy(items[Symbol.iterator](), type);
}

function getLast(value: Value): Value {
  if (value instanceof Lazy || !isIterable(value))
    throw new Error(`'${getPythonType(value)}' object is not reversible`);
  const items = iterate(value);
  return items.length === 0 ? new Undefined("No last item, sequence was empty.") : items[items.length - 1];
}

function getFirst(value: Value): Value {
  const first = getIterator(value).next();
  return first.done === true ? new Undefined("No first item, sequence was empty.") : first.value;
}

function map(value: Value, { positional, named }: Parameters<FilterFunction>[1], context: FilterContext): Value {
  const [name, ...rest] = positional;
  let transform: Key;
  if (name === undefined && named.has("attribute")) {
    for (const key of named.keys())
      if (key !== "attribute" && key !== "default") throw new Error(`Unexpected keyword argument '${key}'`);
    transform = attributeReader(named.get("attribute"), named.get("default"));
  } else {
    if (name === undefined) throw new Error("map requires a filter argument");
    transform = (item) => context.applyFilter(toPythonString(name), item, { positional: rest, named });
  }
  return lazyIfTruthy(value, function* (items) {
    for (const item of items) yield transform(item);
  });
}

/**
 * Creates a generator of a value's items; a falsy value has none, and the source is checked when it
 * is read.
 */
function lazyIfTruthy(value: Value, transform: (items: Iterable<Value>) => Iterator<Value>): Lazy {
  return lazy(isTruthy(value) ? value : [], transform);
}

function selectFilter(expected: boolean, hasAttribute: boolean): FilterFunction {
  return (value, { positional, named }, context) => {
    const read = hasAttribute ? attributeReader(positional[0]) : (item: Value) => item;
    const [name, ...rest] = hasAttribute ? positional.slice(1) : positional;
    const accepts = (item: Value) =>
      name === undefined
        ? isTruthy(read(item))
        : context.applyTest(toPythonString(name), read(item), { positional: rest, named });
    return lazyIfTruthy(value, function* (items) {
      if (hasAttribute && positional.length === 0) throw new Error("Missing parameter for attribute name");
      for (const item of items) if (accepts(item) === expected) yield item;
    });
  };
}

function batch(value: Value, [count = 0, fill = null]: readonly (Value | undefined)[]): Value {
  const size = requireIndex(count);
  return lazy(value, function* (items) {
    let row: Value[] = [];
    for (const item of items) {
      if (row.length === size) {
        yield row;
        row = [];
      }
      row.push(item);
    }
    if (row.length > 0)
      yield fill === null ? row : [...row, ...Array.from({ length: Math.max(0, size - row.length) }, () => fill)];
  });
}

function sliceColumns(value: Value, [count = 0, fill = null]: readonly (Value | undefined)[]): Value {
  const columns = requireIndex(count);
  return lazy(value, function* (source) {
    const items = Array.from(source);
    if (columns === 0) throw new Error("integer division or modulo by zero");
    const [size, extra] = [Math.floor(items.length / columns), items.length % columns];
    let start = 0;
    for (let i = 0; i < columns; i++) {
      const end = start + size + (i < extra ? 1 : 0);
      const column = items.slice(start, end);
      yield fill !== null && i >= extra ? [...column, fill] : column;
      start = end;
    }
  });
}

function sum(value: Value, [attribute, start = 0]: readonly (Value | undefined)[]): Value {
  if (asString(start) !== undefined) throw new Error("sum() can't sum strings [use ''.join(seq) instead]");
  return iterate(value)
    .map(attributeReader(attribute))
    .reduce((total, item) => applyOperator("+", total, item), start);
}

function getItems(value: Value): Value {
  return lazy([], function* () {
    if (value instanceof Undefined) return;
    if (!(value instanceof PythonDict)) throw new Error("Can only get item pairs from a mapping.");
    yield* new DictView(value, "items").toArray();
  });
}

function applyDefault(value: Value, [fallback = "", boolean = false]: readonly (Value | undefined)[]): Value {
  return value instanceof Undefined || (isTruthy(boolean) && !isTruthy(value)) ? fallback : value;
}

function toList(value: Value): Value {
  const items = iterate(value);
  spendItems(items.length);
  return listItems(value) ? [...items] : items;
}

/** Filters of lists, dictionaries and any value. */
export const listFilters: ReadonlyMap<string, FilterFunction> = new Map<string, FilterFunction>([
  ["length", defineFilter([], getLength)],
  ["count", defineFilter([], getLength)],
  ["default", defineFilter(["default_value=", "boolean="], applyDefault)],
  ["d", defineFilter(["default_value=", "boolean="], applyDefault)],
  ["attr", defineFilter(["name"], (value, [name = null]) => getOnlyAttribute(value, toPythonString(name)))],
  ["first", defineFilter([], getFirst)],
  ["last", defineFilter([], getLast)],
  ["list", defineFilter([], toList)],
  ["items", defineFilter([], getItems)],
  ["dictsort", defineFilter(["case_sensitive=", "by=", "reverse="], sortDict)],
  ["reverse", defineFilter([], reverse)],
  ["join", defineFilter(["d=", "attribute="], (value, args, { autoescape }) => join(value, args, autoescape))],
  ["map", map],
  ["select", selectFilter(true, false)],
  ["reject", selectFilter(false, false)],
  ["selectattr", selectFilter(true, true)],
  ["rejectattr", selectFilter(false, true)],
  ["unique", defineFilter(["case_sensitive=", "attribute="], unique)],
  ["sort", defineFilter(["reverse=", "case_sensitive=", "attribute="], sort)],
  ["groupby", defineFilter(["attribute", "default=", "case_sensitive="], groupBy)],
  ["min", findExtreme(1, "<")],
  ["max", findExtreme(-1, ">")],
  ["sum", defineFilter(["attribute=", "start="], sum)],
  ["batch", defineFilter(["linecount", "fill_with="], batch)],
  ["slice", defineFilter(["slices", "fill_with="], sliceColumns)],
]);
