import { getEntry, unmarked } from "./content-marks.js";
import { checkTextLength, spendItems, spendSteps, spendText } from "./limits.js";

/** A template value: None, booleans, integers and strings are JavaScript's; lists are arrays, dictionaries maps. */
export type Value =
  | null
  | boolean
  | number
  | string
  | Float
  | readonly Value[]
  | Tuple
  | Dict
  | Namespace
  | Undefined
  | TemplateFunction;

export type Dict = ReadonlyMap<string, Value>;

/** Arguments of a call in a template. */
export interface CallArguments {
  readonly positional: readonly Value[];
  readonly named: Dict;
}

export type TemplateFunction = (args: CallArguments) => Value;

export class Float {
  constructor(readonly value: number) {}
}

export class Tuple {
  constructor(readonly items: readonly Value[]) {}
}

/** Mutable attributes: `namespace()`. */
export class Namespace {
  constructor(readonly entries: Map<string, Value>) {}
}

/** An undefined name or member; using it raises the message. */
export class Undefined {
  constructor(readonly message = "a value is undefined") {}
}

/** Converts a JSON value. */
export function toValue(content: unknown): Value {
  switch (typeof content) {
    case "string":
    case "boolean":
      return content;
    case "number":
      return toNumber(content, false);
    case "undefined":
      return new Undefined();
    case "object":
      if (content === null) return null;
      if (Array.isArray(content)) return content.map(toValue);
      return new Map(Object.entries(content).map(([name, entry]) => [name, toValue(entry)]));
    default:
      throw new Error(`a ${typeof content} is not a JSON value`);
  }
}

/** Creates a number: an integer unless an operand was a float. */
export function toNumber(content: number, float: boolean): Value {
  return float || !Number.isInteger(content) ? new Float(content) : content;
}

/** Throws when a value is undefined. */
export function requireDefined(value: Value): void {
  if (value instanceof Undefined) throw new Error(value.message);
}

export function asString(value: Value | undefined): string | undefined {
  return typeof value === "string" ? value : undefined;
}

/** Returns the number in an integer, float or boolean, or undefined. */
export function asNumber(value: Value | undefined): number | undefined {
  if (typeof value === "boolean") return Number(value);
  return value instanceof Float ? value.value : typeof value === "number" ? value : undefined;
}

/** Returns the items of a list or tuple, or undefined. */
export function listItems(value: Value | undefined): readonly Value[] | undefined {
  return value instanceof Tuple ? value.items : isList(value) ? value : undefined;
}

export function isList(value: Value | undefined): value is readonly Value[] {
  return Array.isArray(value);
}

export function isDict(value: Value | undefined): value is Dict {
  return value instanceof Map;
}

/** Returns the entries of a dictionary or namespace, or undefined. */
export function dictEntries(value: Value | undefined): Dict | undefined {
  return value instanceof Namespace ? value.entries : isDict(value) ? value : undefined;
}

export function isTruthy(value: Value): boolean {
  if (value instanceof Undefined) return false;
  if (value instanceof Float) return value.value !== 0;
  const items = listItems(value);
  if (items) return items.length > 0;
  return value instanceof Map ? value.size > 0 : Boolean(value);
}

/** Returns what loops iterate over: items, keys, characters; nothing for an undefined name. */
export function iterate(value: Value): readonly Value[] {
  const items = listItems(value);
  if (items) return items;
  const entries = dictEntries(value);
  if (entries) {
    spendItems(entries.size);
    return Array.from(entries.keys());
  }
  if (typeof value === "string") {
    spendItems(value.length);
    return Array.from(value);
  }
  if (value instanceof Undefined) return [];
  throw new Error(`'${getPythonType(value)}' object is not iterable`);
}

/** Returns the number of characters of a text. */
export function countCharacters(text: string): number {
  spendItems(text.length);
  let count = text.length;
  for (let i = 0; i + 1 < text.length; i++)
    if ((text.charCodeAt(i) & 0xfc00) === 0xd800 && (text.charCodeAt(i + 1) & 0xfc00) === 0xdc00) count--;
  return count;
}

/** Accounts for reading or creating a value. */
export function measure(value: Value): void {
  if (typeof value === "string") spendText(value.length);
  else spendItems(listItems(value)?.length ?? dictEntries(value)?.size ?? 0);
}

/** Calls a function and accounts for its arguments and result. */
export function callMeasured(fn: TemplateFunction, args: CallArguments): Value {
  args.positional.forEach(measure);
  args.named.forEach(measure);
  const result = fn(args);
  measure(result);
  return result;
}

/** Concatenates strings in constant time and memory. */
export function concatenate(left: string, right: string): string {
  checkTextLength(left.length + right.length);
  return left + right;
}

/** Python's equality: by content; numbers only equal numbers. */
export function isEqual(a: Value, b: Value): boolean {
  spendSteps(1);
  const x = asNumber(a);
  const y = asNumber(b);
  if (x !== undefined || y !== undefined) return x === y;
  if (typeof a === "string" && typeof b === "string") {
    if (a.length === b.length) spendText(a.length);
    return a === b || (a.length === b.length && unmarked(a) === unmarked(b));
  }
  const items = listItems(a);
  const others = listItems(b);
  if (items && others)
    return isList(a) === isList(b) && items.length === others.length && items.every((x, i) => isEqual(x, others[i]));
  const entries = dictEntries(a);
  const otherEntries = dictEntries(b);
  if (!entries || !otherEntries) return a === b || (a instanceof Undefined && b instanceof Undefined);
  if (entries.size !== otherEntries.size) return false;
  return Array.from(entries).every(([key, value]) => {
    const other = getEntry(otherEntries, key);
    return other !== undefined && isEqual(value, other);
  });
}

/** Compares two values: negative, zero or positive. */
export function compare(left: Value, right: Value): number {
  spendSteps(1);
  requireDefined(left);
  requireDefined(right);
  const x = asNumber(left);
  const y = asNumber(right);
  if (x !== undefined && y !== undefined) return x - y;
  if (typeof left === "string" && typeof right === "string") {
    spendText(Math.min(left.length, right.length));
    const [a, b] = [unmarked(left), unmarked(right)];
    return a < b ? -1 : a > b ? 1 : 0;
  }
  const items = listItems(left);
  const others = listItems(right);
  if (!items || !others) throw new Error(`'${getPythonType(left)}' and '${getPythonType(right)}' have no order`);
  for (let i = 0; i < Math.min(items.length, others.length); i++) {
    if (!isEqual(items[i], others[i])) return compare(items[i], others[i]);
  }
  return items.length - others.length;
}

/** Returns Python's name of a value's type, for messages. */
export function getPythonType(value: Value): string {
  if (value === null) return "NoneType";
  if (value instanceof Float) return "float";
  if (value instanceof Tuple) return "tuple";
  if (value instanceof Namespace) return "Namespace";
  if (value instanceof Undefined) return "Undefined";
  if (typeof value === "object") return isList(value) ? "list" : "dict";
  return { string: "str", number: "int", boolean: "bool", function: "function" }[typeof value as string] ?? "object";
}
