import { compare, contains, isEqual } from "./comparison.js";
import { rewriteMarked } from "./content-marks.js";
import { concatenate, repeatText, spendItems } from "./limits.js";
import { escapeMarkup } from "./markup.js";
import { asInt, calculate, toInt } from "./numbers.js";
import { percentFormat } from "./percent-format.js";
import {
  Bytes,
  Float,
  Markup,
  PythonTuple,
  type Value,
  asString,
  getPythonType,
  isList,
  listItems,
  requireDefined,
} from "./values.js";

/** Evaluates a comparison. */
export function applyComparison(operator: string, left: Value, right: Value): boolean {
  switch (operator) {
    case "==":
      return isEqual(left, right);
    case "!=":
      return !isEqual(left, right);
    case "in":
      return contains(right, left);
    case "not in":
      return !contains(right, left);
    case "<":
      return compare(left, right, operator) < 0;
    case "<=":
      return compare(left, right, operator) <= 0;
    case ">":
      return compare(left, right, operator) > 0;
    default:
      return compare(left, right, operator) >= 0;
  }
}

const asNumeric = (value: Value) => (value instanceof Float ? value : asInt(value));

/** Evaluates an arithmetic operator. */
export function applyOperator(operator: string, left: Value, right: Value): Value {
  requireDefined(left);
  if (operator === "%" && asString(left) !== undefined) return formatPercent(left, right);
  requireDefined(right);
  const [x, y] = [asNumeric(left), asNumeric(right)];
  if (x !== undefined && y !== undefined) return calculate(operator, x, y);
  const result = operator === "+" ? add(left, right) : operator === "*" ? multiply(left, right) : undefined;
  if (result !== undefined) return result;
  const types = `'${getPythonType(left)}' and '${getPythonType(right)}'`;
  throw new Error(`unsupported operand type(s) for ${operator}: ${types}`);
}

function add(left: Value, right: Value): Value | undefined {
  const [text, other] = [asString(left), asString(right)];
  if (text !== undefined && other !== undefined) {
    if (!(left instanceof Markup) && !(right instanceof Markup)) return concatenate(text, other);
    return new Markup(concatenate(escapeMarkup(left).text, escapeMarkup(right).text));
  }
  if (left instanceof Bytes && right instanceof Bytes)
    return new Bytes(Uint8Array.from([...left.bytes, ...right.bytes]));
  const [items, others] = [listItems(left), listItems(right)];
  if (!items || !others || isList(left) !== isList(right)) return undefined;
  spendItems(items.length + others.length);
  const all = [...items, ...others];
  return isList(left) ? all : new PythonTuple(all);
}

function multiply(left: Value, right: Value): Value | undefined {
  const times = asInt(right) ?? asInt(left);
  const value = asInt(right) === undefined ? right : left;
  if (times === undefined) return undefined;
  const count = Math.max(0, Number(times));
  const text = asString(value);
  if (text !== undefined)
    return value instanceof Markup ? new Markup(repeatText(text, count)) : repeatText(text, count);
  const items = listItems(value);
  if (!items) return undefined;
  spendItems(items.length * count);
  const all = Array.from({ length: count }, () => items).flat();
  return isList(value) ? all : new PythonTuple(all);
}

function formatPercent(left: Value, right: Value): Value {
  const text = asString(left) ?? "";
  if (!(left instanceof Markup)) return rewriteMarked(text, (plain) => percentFormat(plain, right));
  const escape = (value: Value): Value => (asString(value) === undefined ? value : escapeMarkup(value));
  const values = right instanceof PythonTuple ? new PythonTuple(right.items.map(escape)) : escape(right);
  return new Markup(rewriteMarked(text, (plain) => percentFormat(plain, values)));
}

/** Evaluates + or - of one operand. */
export function applySign(operator: "+" | "-", value: Value): Value {
  requireDefined(value);
  if (value instanceof Float) return operator === "-" ? new Float(-value.value) : value;
  const integer = asInt(value);
  if (integer === undefined) throw new Error(`bad operand type for unary ${operator}: '${getPythonType(value)}'`);
  return operator === "-" ? calculate("-", 0, integer) : toInt(integer);
}
