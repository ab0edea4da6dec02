import type { Value } from "@huggingface/jinja";

import { pythonString } from "./python-text.js";
import {
  contentOf,
  dictEntries,
  equal,
  isUndefined,
  iterate,
  listItems,
  listValue,
  numberOf,
  numberValue,
  pythonType,
  stringOf,
  toValue,
} from "./values.js";

/** What a template does with a name or member that is not there. The message is Jinja's. */
class UndefinedError extends Error {}

const hints = new WeakMap<Value, string>();

/** An undefined value that knows what was missing. */
export function missing(message: string): Value {
  const value = toValue(undefined);
  hints.set(value, message);
  return value;
}

/** Throws when a value is undefined, for uses that undefined values do not allow. */
export function requireDefined(value: Value): void {
  if (isUndefined(value)) throw new UndefinedError(hints.get(value) ?? "a value is undefined");
}

/** `value[index]`, and `value.name` for members: undefined when there is none. */
export function subscript(value: Value, index: Value): Value {
  requireDefined(value);
  requireDefined(index);
  const entries = dictEntries(value);
  const name = stringOf(index);
  if (entries) {
    const found = name === undefined ? undefined : entries.get(name);
    return found ?? missing(`'${pythonType(value)} object' has no attribute '${pythonString(index)}'`);
  }
  const position = contentOf(index, "IntegerValue");
  const text = stringOf(value);
  const items = listItems(value) ?? (text === undefined ? undefined : Array.from(text, toValue));
  if (position !== undefined && items) {
    return items.at(position) ?? missing(`${pythonType(value)} object has no element ${position}`);
  }
  const owner = value.type === "NullValue" ? "None" : `${pythonType(value)} object`;
  return missing(`'${owner}' has no attribute '${pythonString(index)}'`);
}

/** Negative, zero or positive, as the first value is before, equal to or after the second. */
export function compare(left: Value, right: Value): number {
  requireDefined(left);
  requireDefined(right);
  const x = numberOf(left);
  const y = numberOf(right);
  if (x !== undefined && y !== undefined) return x - y;
  const a = stringOf(left);
  const b = stringOf(right);
  if (a !== undefined && b !== undefined) return a < b ? -1 : a > b ? 1 : 0;
  const items = listItems(left);
  const others = listItems(right);
  if (!items || !others) throw new Error(`'${pythonType(left)}' and '${pythonType(right)}' have no order`);
  for (let i = 0; i < Math.min(items.length, others.length); i++) {
    if (!equal(items[i], others[i])) return compare(items[i], others[i]);
  }
  return items.length - others.length;
}

/** `item in container`. */
export function contains(container: Value, item: Value): boolean {
  const text = stringOf(container);
  if (text === undefined) return iterate(container).some((member) => equal(member, item));
  requireDefined(item);
  const part = stringOf(item);
  if (part === undefined) throw new Error(`'in <string>' requires a string, not ${pythonType(item)}`);
  return text.includes(part);
}

/** A binary operator that needs both sides. */
export function operate(operator: string, left: Value, right: Value): Value {
  switch (operator) {
    case "==":
      return toValue(equal(left, right));
    case "!=":
      return toValue(!equal(left, right));
    case "in":
      return toValue(contains(right, left));
    case "not in":
      return toValue(!contains(right, left));
    case "~":
      return toValue(pythonString(left) + pythonString(right));
    case "<":
      return toValue(compare(left, right) < 0);
    case "<=":
      return toValue(compare(left, right) <= 0);
    case ">":
      return toValue(compare(left, right) > 0);
    case ">=":
      return toValue(compare(left, right) >= 0);
    default:
      return arithmetic(operator, left, right);
  }
}

function arithmetic(operator: string, left: Value, right: Value): Value {
  requireDefined(left);
  requireDefined(right);
  const x = numberOf(left);
  const y = numberOf(right);
  if (x !== undefined && y !== undefined) return calculate(operator, x, y, isFloat(left) || isFloat(right));
  if (operator === "+") {
    const texts = [stringOf(left), stringOf(right)];
    if (texts[0] !== undefined && texts[1] !== undefined) return toValue(texts[0] + texts[1]);
    const items = listItems(left);
    const others = listItems(right);
    if (items && others && left.type === right.type) return listValue([...items, ...others]);
  }
  if (operator === "*") {
    const repeated = repeat(left, y) ?? repeat(right, x);
    if (repeated) return repeated;
  }
  throw new Error(`unsupported operand type(s) for ${operator}: '${pythonType(left)}' and '${pythonType(right)}'`);
}

function isFloat(value: Value): boolean {
  return contentOf(value, "FloatValue") !== undefined;
}

function repeat(value: Value, times: number | undefined): Value | null {
  const text = stringOf(value);
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
