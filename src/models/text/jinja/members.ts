import { toCharacters } from "./code-points.js";
import { contains, isEqual, isSame } from "./comparison.js";
import { marked, rewriteMarked } from "./content-marks.js";
import { PythonDict, DictView } from "./dict.js";
import { iterate } from "./iteration.js";
import { joinTexts, spendItems } from "./limits.js";
import { asInt, asNumber, bitLength } from "./numbers.js";
import { toPythonRepr } from "./python-text.js";
import { escapeMarkup } from "./markup.js";
import { formatString } from "./string-format.js";
import { formatValue } from "./format-value.js";
import { findStringMethod } from "./string-methods.js";
import {
  Bytes,
  type CallArguments,
  Float,
  Markup,
  PythonObject,
  PythonRange,
  type TemplateFunction,
  PythonTuple,
  Undefined,
  type Value,
  asPlainString,
  asString,
  firstFound,
  getPythonType,
  isList,
  listItems,
  measure,
  requireDefined,
} from "./values.js";

/** Methods that change their object, which the sandbox refuses. */
const mutators = {
  list: ["append", "clear", "pop", "reverse", "insert", "sort", "extend", "remove"],
  dict: ["clear", "pop", "popitem", "setdefault", "update"],
} as const;

/**
 * Returns `object.name`: an attribute, which hides an item of that name, or the item; undefined
 * when missing.
 */
export function getAttribute(object: Value, name: string): Value {
  requireDefined(object);
  const found = firstFound(
    () => findAttribute(object, name),
    () => findItem(object, name),
  );
  return found === undefined ? missing(object, name) : found;
}

/**
 * Returns `object[index]`: an item, which hides an attribute of that name, or the attribute;
 * undefined when missing.
 */
export function getItem(object: Value, index: Value): Value {
  requireDefined(object);
  const name = asPlainString(index);
  const attribute = () => (name === undefined ? undefined : findAttribute(object, name));
  const found = firstFound(() => findItem(object, index), attribute);
  return found === undefined ? missing(object, index) : found;
}

/** Returns `object | attr(name)`: an attribute only. */
export function getOnlyAttribute(object: Value, name: string): Value {
  requireDefined(object);
  const found = findAttribute(object, name);
  return found === undefined ? missing(object, name) : found;
}

function missing(object: Value, index: Value): Undefined {
  const owner = object === null ? "None" : `${getPythonType(object)} object`;
  const name = asString(index);
  return new Undefined(
    name === undefined ? `${owner} has no element ${toPythonRepr(index)}` : `'${owner}' has no attribute '${name}'`,
  );
}

function findItem(object: Value, index: Value): Value | undefined {
  if (object instanceof PythonDict) return isList(index) || index instanceof PythonDict ? undefined : object.get(index);
  const position = asInt(index);
  if (position === undefined) return undefined;
  const at = Number(position);
  if (object instanceof PythonRange) return object.toArray().at(at);
  const items = listItems(object) ?? (object instanceof Bytes ? Array.from(object.bytes) : undefined);
  if (items) return items.at(at);
  const text = asString(object);
  if (text === undefined) return undefined;
  const character = Array.from(toCharacters(text)).at(at);
  return character === undefined ? undefined : rewrap(object, character);
}

/** Returns Markup for a part of Markup. */
const rewrap = (object: Value, text: string): Value => (object instanceof Markup ? new Markup(text) : text);

function findAttribute(object: Value, name: string): Value | undefined {
  if (name.startsWith("_") && !(object instanceof PythonObject && object.getAttribute(name) !== undefined)) {
    return undefined;
  }
  // A method's call reads the whole object.
  measure(object);
  const text = asString(object);
  if (text !== undefined && (name === "format" || name === "format_map")) return createFormatMethod(object, text, name);
  if (text !== undefined) return findStringMethod(object, name);
  if (object instanceof PythonDict) return findMethod("dict", dictMethods, object, name);
  if (isList(object)) return findMethod("list", listMethods, object, name);
  if (object instanceof PythonTuple) {
    return firstFound(
      () => object.getAttribute(name),
      () => findMethod("tuple", tupleMethods, object, name),
    );
  }
  if (object instanceof PythonRange)
    return object.getAttribute(name) ?? findMethod("range", tupleMethods, object, name);
  if (object instanceof Bytes) return findMethod("bytes", bytesMethods, object, name);
  if (object instanceof DictView && object.kind !== "values" && name === "isdisjoint")
    return ({ positional: [other = []] }) => !iterate(other).some((item) => contains(object, item));
  if (object instanceof Float || asInt(object) !== undefined) return findNumberAttribute(object, name);
  return object instanceof PythonObject ? object.getAttribute(name) : undefined;
}

function createFormatMethod(object: Value, text: string, name: string): TemplateFunction {
  const members = { getAttribute, getItem };
  return (args) => {
    const [mapping] = args.positional;
    const fields =
      name === "format"
        ? args
        : { positional: [], named: mapping instanceof PythonDict ? toNamed(mapping) : new Map() };
    const format = object instanceof Markup ? formatEscaped : formatValue;
    return rewrap(
      object,
      rewriteMarked(text, (plain) => formatString(plain, fields, members, format)),
    );
  };
}

/** Formats a field of Markup, whose values stay as they are without a specification. */
const formatEscaped = (value: Value, spec: string) => escapeMarkup(spec === "" ? value : formatValue(value, spec)).text;

/** Returns the entries of a dictionary with texts as keys, as keyword arguments. */
export function toNamed(dict: PythonDict): Map<string, Value> {
  const entries = dict.entries().map(([key, value]): [string, Value] => {
    const name = asPlainString(key);
    if (name === undefined) throw new Error("keywords must be strings");
    return [name, value];
  });
  return new Map(entries);
}

type Method<Owner> = (owner: Owner, args: CallArguments) => Value;

function findMethod<Owner extends Value>(
  type: string,
  methods: ReadonlyMap<string, Method<Owner>>,
  owner: Owner,
  name: string,
): TemplateFunction | Undefined | undefined {
  const method = methods.get(name);
  if (method) return (args) => method(owner, args);
  const isMutator = type in mutators && mutators[type as keyof typeof mutators].some((mutator) => mutator === name);
  return isMutator ? new Undefined(`access to attribute '${name}' of '${type}' object is unsafe.`) : undefined;
}

const takeNone = ({ positional, named }: CallArguments) => {
  if (positional.length + named.size > 0) throw new Error(`the method takes no arguments (${positional.length} given)`);
};

const dictMethods: ReadonlyMap<string, Method<PythonDict>> = new Map<string, Method<PythonDict>>([
  [
    "get",
    (dict, { positional, named }) => {
      if (positional.length < 1 || positional.length > 2 || named.size > 0)
        throw new Error(`get expected 1 or 2 arguments, got ${positional.length}`);
      const [key, fallback = null] = positional;
      const value = dict.get(key);
      return value === undefined ? fallback : value;
    },
  ],
  ...(["keys", "values", "items"] as const).map((kind): [string, Method<PythonDict>] => [
    kind,
    (dict, args) => {
      takeNone(args);
      return new DictView(dict, kind);
    },
  ]),
  ["copy", (dict) => new PythonDict(dict.entries())],
  [
    "fromkeys",
    (_, { positional: [keys = [], value = null] }) => new PythonDict(iterate(keys).map((key) => [key, value] as const)),
  ],
]);

function search(items: readonly Value[], { positional }: CallArguments, first: boolean): number {
  if (!first && positional.length > 1)
    throw new Error(`count() takes exactly one argument (${positional.length} given)`);
  const [value, start = 0, stop = items.length] = positional;
  if (value === undefined) throw new Error("expected at least 1 argument, got 0");
  let count = 0;
  const [low, high] = items.length > 0 ? sliceBounds([start, stop], items.length) : [0, 0];
  for (let i = first ? low : 0; i < (first ? high : items.length); i++) {
    if (!isSame(items[i], value) && !isEqual(items[i], value)) continue;
    if (first) return i;
    count++;
  }
  if (first) throw new Error(`${toPythonRepr(value)} is not in list`);
  return count;
}

const listMethods: ReadonlyMap<string, Method<readonly Value[]>> = new Map<string, Method<readonly Value[]>>([
  ["index", (items, args) => search(items, args, true)],
  ["count", (items, args) => search(items, args, false)],
  ["copy", (items) => [...items]],
]);

const tupleMethods: ReadonlyMap<string, Method<PythonTuple | PythonRange>> = new Map<
  string,
  Method<PythonTuple | PythonRange>
>([
  ["index", (tuple, args) => search(iterate(tuple), args, true)],
  ["count", (tuple, args) => search(iterate(tuple), args, false)],
]);

const bytesMethods: ReadonlyMap<string, Method<Bytes>> = new Map<string, Method<Bytes>>([
  ["decode", (value) => marked(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(value.bytes))],
  ["hex", (value) => Array.from(value.bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")],
]);

function findNumberAttribute(object: Value, name: string): Value | undefined {
  const integer = asInt(object);
  const number = asNumber(object) ?? 0;
  const plain = integer ?? object;
  const fixed: Readonly<Record<string, () => Value>> = {
    real: () => plain,
    imag: () => (integer === undefined ? new Float(0) : 0),
    conjugate: () => () => plain,
    ...(integer === undefined
      ? { is_integer: () => () => Number.isInteger(number) }
      : {
          numerator: () => plain,
          denominator: () => 1,
          bit_length: () => () => bitLength(integer),
          bit_count: () => () => BigInt(integer).toString(2).replace(/[^1]/g, "").length,
          as_integer_ratio: () => () => new PythonTuple([plain, 1]),
        }),
  };
  return Object.hasOwn(fixed, name) ? fixed[name]() : undefined;
}

/** Clamps slice bounds to a length, as Python does for a positive step. */
function sliceBounds(bounds: readonly Value[], length: number): number[] {
  return bounds.map((bound) => {
    const index = Number(asInt(bound) ?? 0);
    return Math.min(Math.max(index < 0 ? index + length : index, 0), length);
  });
}

/** Returns `value[start:stop:step]`. @throws for what cannot be sliced. */
export function slice(value: Value, bounds: readonly (Value | undefined)[]): Value {
  requireDefined(value);
  const [start, stop, step = 1] = bounds.map((bound) => {
    if (bound === undefined || bound === null) return undefined;
    const index = asInt(bound);
    if (index === undefined) throw new Error("slice indices must be integers or None or have an __index__ method");
    return Number(index);
  });
  const text = asString(value);
  const items =
    text !== undefined ? toCharacters(text) : value instanceof PythonRange ? value.toArray() : listItems(value);
  if (items === undefined) {
    if (value instanceof PythonDict) throw new Error("unhashable type: 'slice'");
    throw new Error(`'${getPythonType(value)}' object is not subscriptable`);
  }
  if (step === 0) throw new Error("slice step cannot be zero");
  spendItems(items.length);
  const [low, high] = step > 0 ? [0, items.length] : [-1, items.length - 1];
  const clamp = (index: number) => Math.min(Math.max(index < 0 ? index + items.length : index, low), high);
  const first = start === undefined ? (step > 0 ? low : high) : clamp(start);
  const end = stop === undefined ? (step > 0 ? high : low) : clamp(stop);
  if (value instanceof PythonRange) return new PythonRange(value.at(first), value.at(end), value.step * step);
  const selected: Value[] = [];
  for (let i = first; step > 0 ? i < end : i > end; i += step) selected.push(items[i]);
  if (text !== undefined) return rewrap(value, joinTexts(selected as string[], ""));
  return value instanceof PythonTuple ? new PythonTuple(selected) : selected;
}
