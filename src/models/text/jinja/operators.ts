import type { Value } from "@huggingface/jinja";

import { toPythonString } from "./python-text.js";
import {
  getContent,
  dictEntries,
  isEqual,
  isUndefined,
  iterate,
  listItems,
  listValue,
  asNumber,
  numberValue,
  getPythonType,
  asString,
  toValue,
} from "./values.js";

/** Use of an undefined name or member, with Jinja's message. */
class UndefinedError extends Error {}

const undefinedMessages = new WeakMap<Value, string>();

/** Creates an undefined value with a message naming what is missing. */
export function createUndefined(message: string): Value {
  const value = toValue(undefined);
  undefinedMessages.set(value, message);
  return value;
}

/** Throws when a value is undefined. */
export function requireDefined(value: Value): void {
  if (isUndefined(value)) throw new UndefinedError(undefinedMessages.get(value) ?? "a value is undefined");
}

/** Returns `value[index]` or `value.name`; undefined when missing. */
export function subscript(value: Value, index: Value): Value {
  requireDefined(value);
  requireDefined(index);
  const entries = dictEntries(value);
  const name = asString(index);
  if (entries) {
    const found = name === undefined ? undefined : entries.get(name);
    return found ?? createUndefined(`'${getPythonType(value)} object' has no attribute '${toPythonString(index)}'`);
  }
  const position = getContent(index, "IntegerValue");
  const text = asString(value);
  const items = listItems(value) ?? (text === undefined ? undefined : Array.from(text, toValue));
  if (position !== undefined && items) {
    return items.at(position) ?? createUndefined(`${getPythonType(value)} object has no element ${position}`);
  }
  const owner = value.type === "NullValue" ? "None" : `${getPythonType(value)} object`;
  return createUndefined(`'${owner}' has no attribute '${toPythonString(index)}'`);
}

/** Compares two values: negative, zero or positive. */
export function compare(left: Value, right: Value): number {
  requireDefined(left);
  requireDefined(right);
  const x = asNumber(left);
  const y = asNumber(right);
  if (x !== undefined && y !== undefined) return x - y;
  const a = asString(left);
  const b = asString(right);
  if (a !== undefined && b !== undefined) return a < b ? -1 : a > b ? 1 : 0;
  const items = listItems(left);
  const rightItems = listItems(right);
  if (!items || !rightItems) throw new Error(`'${getPythonType(left)}' and '${getPythonType(right)}' have no order`);
  for (let i = 0; i < Math.min(items.length, rightItems.length); i++) {
    if (!isEqual(items[i], rightItems[i])) return compare(items[i], rightItems[i]);
  }
  return items.length - rightItems.length;
}

/** Evaluates `item in container`. */
export function contains(container: Value, item: Value): boolean {
  const text = asString(container);
  if (text === undefined) return iterate(container).some((member) => isEqual(member, item));
  requireDefined(item);
  const part = asString(item);
  if (part === undefined) throw new Error(`'in <string>' requires a string, not ${getPythonType(item)}`);
  return text.includes(part);
}

/** Evaluates a binary operator. */
export function applyOperator(operator: string, left: Value, right: Value): Value {
  switch (operator) {
    case "==":
      return toValue(isEqual(left, right));
    case "!=":
      return toValue(!isEqual(left, right));
    case "in":
      return toValue(contains(right, left));
    case "not in":
      return toValue(!contains(right, left));
    case "~":
      return toValue(toPythonString(left) + toPythonString(right));
    case "<":
      return toValue(compare(left, right) < 0);
    case "<=":
      return toValue(compare(left, right) <= 0);
    case ">":
      return toValue(compare(left, right) > 0);
    case ">=":
      return toValue(compare(left, right) >= 0);
    default:
      return applyArithmetic(operator, left, right);
  }
}

function applyArithmetic(operator: string, left: Value, right: Value): Value {
  requireDefined(left);
  requireDefined(right);
  const x = asNumber(left);
  const y = asNumber(right);
  if (x !== undefined && y !== undefined) return calculate(operator, x, y, isFloat(left) || isFloat(right));
  if (operator === "+") {
    const texts = [asString(left), asString(right)];
    if (texts[0] !== undefined && texts[1] !== undefined) return toValue(texts[0] + texts[1]);
    const items = listItems(left);
    const rightItems = listItems(right);
    if (items && rightItems && left.type === right.type) return listValue([...items, ...rightItems]);
  }
  if (operator === "*") {
    const repeated = repeat(left, y) ?? repeat(right, x);
    if (repeated) return repeated;
  }
  throw new Error(
    `unsupported operand type(s) for ${operator}: '${getPythonType(left)}' and '${getPythonType(right)}'`,
  );
}

function isFloat(value: Value): boolean {
  return getContent(value, "FloatValue") !== undefined;
}

function repeat(value: Value, times: number | undefined): Value | null {
  const text = asString(value);
  if (times === undefined || text === undefined) return null;
  if (text.length * times > 1e7) throw new Error("a repeated string would be too long");
  return toValue(text.repeat(Math.max(0, times)));
}

function calculate(operator: string, x: number, y: number, float: boolean): Value {
  if (y === 0 && (operator === "/" || operator === "//" || operator === "%")) throw new Error("division by zero");
  switch (operator) {
    case "+":
      return numberValue(x + y, float);
    case "-":
      return numberValue(x - y, float);
    case "*":
      return numberValue(x * y, float);
    case "/":
      return numberValue(x / y, true);
    case "//":
      return numberValue(Math.floor(x / y), float);
    case "%":
      return numberValue(x - y * Math.floor(x / y), float);
    case "**":
      return numberValue(x ** y, float || y < 0);
    default:
      throw new Error(`unknown operator ${operator}`);
  }
}
