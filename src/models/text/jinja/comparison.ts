import { compareText } from "./code-points.js";
import { unmarked } from "./content-marks.js";
import { PythonDict, DictView } from "./dict.js";
import { getIterator, iterate } from "./iteration.js";
import { spendSteps, spendText } from "./limits.js";
import { asInt, compareNumbers } from "./numbers.js";
import {
  Bytes,
  Float,
  Lazy,
  PythonRange,
  PythonTuple,
  Undefined,
  type Value,
  asString,
  getPythonType,
  isList,
  listItems,
  requireDefined,
} from "./values.js";

const asNumeric = (value: Value) => (value instanceof Float ? value : asInt(value));

/** Python's equality: by content; numbers only equal numbers. */
export function isEqual(a: Value, b: Value): boolean {
  spendSteps(1);
  const [x, y] = [asNumeric(a), asNumeric(b)];
  if (x !== undefined || y !== undefined) return x !== undefined && y !== undefined && compareNumbers(x, y) === 0;
  const [text, otherText] = [asString(a), asString(b)];
  if (text !== undefined && otherText !== undefined) {
    if (text.length === otherText.length) spendText(text.length);
    return text === otherText || (text.length === otherText.length && unmarked(text) === unmarked(otherText));
  }
  const [items, others] = [listItems(a), listItems(b)];
  if (items && others) return isList(a) === isList(b) && areEqual(items, others);
  if (a instanceof PythonDict && b instanceof PythonDict) {
    if (a.size !== b.size) return false;
    return a.entries().every(([key, value]) => {
      const other = b.get(key);
      return other !== undefined && isEqual(value, other);
    });
  }
  if (a instanceof PythonRange && b instanceof PythonRange) return areEqual(a.toArray(), b.toArray());
  if (a instanceof Bytes && b instanceof Bytes) return areEqual(Array.from(a.bytes), Array.from(b.bytes));
  if (a instanceof DictView && b instanceof DictView && a.kind !== "values" && b.kind !== "values")
    return a.dict.size === b.dict.size && a.toArray().every((item) => contains(b, item));
  return a === b || (a instanceof Undefined && b instanceof Undefined);
}

function areEqual(items: readonly Value[], others: readonly Value[]): boolean {
  return (
    items.length === others.length && items.every((item, i) => isSame(item, others[i]) || isEqual(item, others[i]))
  );
}

/** Python's `is`. */
export function isSame(a: Value, b: Value): boolean {
  return (
    a === b || (a instanceof PythonTuple && b instanceof PythonTuple && a.items.length === 0 && b.items.length === 0)
  );
}

/**
 * Compares two values for < and >: negative, zero, positive, or NaN. @throws for values without an
 * order.
 */
export function compare(left: Value, right: Value, operator = "<"): number {
  spendSteps(1);
  requireDefined(left);
  requireDefined(right);
  const [x, y] = [asNumeric(left), asNumeric(right)];
  if (x !== undefined && y !== undefined) return compareNumbers(x, y);
  const [text, otherText] = [asString(left), asString(right)];
  if (text !== undefined && otherText !== undefined) {
    spendText(Math.min(text.length, otherText.length));
    return compareText(unmarked(text), unmarked(otherText));
  }
  const [items, others] = [listItems(left), listItems(right)];
  if (!items || !others || isList(left) !== isList(right))
    throw new Error(
      `'${operator}' not supported between instances of '${getPythonType(left)}' and '${getPythonType(right)}'`,
    );
  for (let i = 0; i < Math.min(items.length, others.length); i++) {
    if (!isSame(items[i], others[i]) && !isEqual(items[i], others[i])) return compare(items[i], others[i], operator);
  }
  return items.length - others.length;
}

/** Evaluates `item in container`. */
export function contains(container: Value, item: Value): boolean {
  const text = asString(container);
  if (text !== undefined) {
    const part = asString(item);
    if (part === undefined)
      throw new Error(`'in <string>' requires string as left operand, not ${getPythonType(item)}`);
    spendText(text.length);
    return unmarked(text).includes(unmarked(part));
  }
  if (container instanceof PythonDict) return container.has(item);
  if (container instanceof DictView && container.kind === "keys") return container.dict.has(item);
  if (container instanceof Lazy) {
    const iterator = getIterator(container);
    for (let next = iterator.next(); next.done !== true; next = iterator.next()) {
      if (isSame(next.value, item) || isEqual(next.value, item)) return true;
    }
    return false;
  }
  return iterate(container).some((member) => isSame(member, item) || isEqual(member, item));
}
