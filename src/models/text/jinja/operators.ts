import { getEntry, unmarked } from "./content-marks.js";
import { joinTexts, repeatText, spendItems, spendText } from "./limits.js";
import { toPythonString } from "./python-text.js";
import { stringMethods } from "./string-methods.js";
import {
  type CallArguments,
  type Dict,
  Float,
  type TemplateFunction,
  Tuple,
  Undefined,
  type Value,
  asNumber,
  asString,
  compare,
  concatenate,
  dictEntries,
  getPythonType,
  isDict,
  isEqual,
  isList,
  iterate,
  listItems,
  measure,
  requireDefined,
  toNumber,
} from "./values.js";

/** Returns `value[index]` or `value.name`; undefined when missing. */
export function subscript(value: Value, index: Value): Value {
  requireDefined(value);
  requireDefined(index);
  const entries = dictEntries(value);
  if (!entries && typeof index === "number") {
    const items = listItems(value) ?? (typeof value === "string" ? iterate(value) : undefined);
    if (items) return items.at(index) ?? new Undefined(`${getPythonType(value)} object has no element ${index}`);
  }
  const owner = value === null ? "None" : `${getPythonType(value)} object`;
  const missing = `'${owner}' has no attribute '${toPythonString(index)}'`;
  return (typeof index === "string" && entries ? getEntry(entries, index) : undefined) ?? new Undefined(missing);
}

type DictMethod = (entries: Dict, args: CallArguments) => Value;

const dictMethods: ReadonlyMap<string, DictMethod> = new Map<string, DictMethod>([
  ["get", (entries, { positional: [key, fallback = null] }) => getEntry(entries, asString(key) ?? "") ?? fallback],
  ["items", (entries) => Array.from(entries, (entry) => new Tuple(entry))],
  ["keys", (entries) => Array.from(entries.keys())],
  ["values", (entries) => Array.from(entries.values())],
  ["copy", (entries) => new Map(entries)],
]);

/** Returns `object.name`: a method, which hides a dictionary's entry of that name, or as `subscript`. */
export function getMember(object: Value, name: string): Value {
  return getMethod(object, name) ?? subscript(object, name);
}

function getMethod(object: Value, name: string): TemplateFunction | undefined {
  measure(object);
  if (typeof object === "string") {
    const method = stringMethods.get(name);
    return method && ((args) => method(object, args));
  }
  if (isDict(object)) {
    const method = dictMethods.get(name);
    return method && ((args) => method(object, args));
  }
  const items = listItems(object);
  return items && (name === "index" || name === "count") ? (args) => searchList(items, name, args) : undefined;
}

function searchList(items: readonly Value[], name: "index" | "count", { positional: [value = null] }: CallArguments) {
  const matches = items.map((item) => isEqual(item, value));
  if (name === "count") return matches.filter(Boolean).length;
  const index = matches.indexOf(true);
  if (index < 0) throw new Error("the value is not in the list");
  return index;
}

/** Returns `value[start:stop:step]` of a list, tuple or string. */
export function slice(value: Value, bounds: readonly (Value | undefined)[]): Value {
  // The units of a text without surrogates are its characters.
  const isUnits = typeof value === "string" && !/[\ud800-\udfff]/.test(value);
  const items = listItems(value) ?? (isUnits ? value : typeof value === "string" ? iterate(value) : undefined);
  const [start, stop, step = 1] = bounds.map((bound) => {
    if (bound === undefined || bound === null || typeof bound === "number") return bound ?? undefined;
    throw new Error("slice indices must be integers or None");
  });
  if (!items) throw new Error(`'${getPythonType(value)}' object cannot be sliced`);
  if (step === 0) throw new Error("slice step cannot be zero");
  spendItems(items.length);
  const [low, high] = step > 0 ? [0, items.length] : [-1, items.length - 1];
  const clamp = (index: number) => Math.min(Math.max(index < 0 ? index + items.length : index, low), high);
  const end = stop === undefined ? (step > 0 ? high : low) : clamp(stop);
  if (typeof items === "string" && step === 1)
    return items.slice(start === undefined ? 0 : clamp(start), Math.max(end, start === undefined ? 0 : clamp(start)));
  const selected: Value[] = [];
  for (let i = start === undefined ? (step > 0 ? low : high) : clamp(start); step > 0 ? i < end : i > end; i += step)
    selected.push(items[i]);
  if (typeof value === "string") return joinTexts(selected.map(toPythonString), "");
  return value instanceof Tuple ? new Tuple(selected) : selected;
}

/** Evaluates `item in container`. */
export function contains(container: Value, item: Value): boolean {
  if (typeof container === "string") {
    requireDefined(item);
    if (typeof item !== "string") throw new Error(`'in <string>' requires a string, not ${getPythonType(item)}`);
    spendText(container.length);
    return unmarked(container).includes(unmarked(item));
  }
  const entries = dictEntries(container);
  if (entries) return typeof item === "string" && getEntry(entries, item) !== undefined;
  return iterate(container).some((member) => isEqual(member, item));
}

/** Evaluates a binary operator. */
export function applyOperator(operator: string, left: Value, right: Value): Value {
  switch (operator) {
    case "==":
      return isEqual(left, right);
    case "!=":
      return !isEqual(left, right);
    case "in":
      return contains(right, left);
    case "not in":
      return !contains(right, left);
    case "~":
      return concatenate(toPythonString(left), toPythonString(right));
    case "<":
      return compare(left, right) < 0;
    case "<=":
      return compare(left, right) <= 0;
    case ">":
      return compare(left, right) > 0;
    case ">=":
      return compare(left, right) >= 0;
    default:
      return applyArithmetic(operator, left, right);
  }
}

function applyArithmetic(operator: string, left: Value, right: Value): Value {
  requireDefined(left);
  requireDefined(right);
  const x = asNumber(left);
  const y = asNumber(right);
  if (x !== undefined && y !== undefined)
    return calculate(operator, x, y, left instanceof Float || right instanceof Float);
  if (operator === "+") {
    if (typeof left === "string" && typeof right === "string") return concatenate(left, right);
    if (isList(left) && isList(right)) {
      spendItems(left.length + right.length);
      return [...left, ...right];
    }
  }
  if (operator === "*") {
    const text = asString(left) ?? asString(right);
    const times = x ?? y;
    if (text !== undefined && times !== undefined) return repeatText(text, times);
  }
  const types = `'${getPythonType(left)}' and '${getPythonType(right)}'`;
  throw new Error(`unsupported operand type(s) for ${operator}: ${types}`);
}

function calculate(operator: string, x: number, y: number, float: boolean): Value {
  if (y === 0 && (operator === "/" || operator === "//" || operator === "%")) throw new Error("division by zero");
  switch (operator) {
    case "+":
      return toNumber(x + y, float);
    case "-":
      return toNumber(x - y, float);
    case "*":
      return toNumber(x * y, float);
    case "/":
      return new Float(x / y);
    case "//":
      return toNumber(Math.floor(x / y), float);
    case "%":
      return toNumber(x - y * Math.floor(x / y), float);
    case "**":
      return toNumber(x ** y, float || y < 0);
    default:
      throw new Error(`unknown operator ${operator}`);
  }
}
