import { roundFloat, roundInteger } from "../decimal.js";
import {
  asInt,
  asNumber,
  calculate,
  parseFloatText,
  parseInteger,
  toAsciiDigits,
  requireIndex,
  toInt,
  truncateFloat,
} from "../numbers.js";
import { strip } from "../text-functions.js";
import { Float, type Value, asPlainString, getPythonType, requireDefined } from "../values.js";
import { type FilterFunction, defineFilter } from "./define-filter.js";

function toInteger(value: Value, [fallback = 0, base = 10]: readonly (Value | undefined)[]): Value {
  requireDefined(value);
  const integer = asInt(value);
  if (integer !== undefined) return toInt(integer);
  const text = asPlainString(value);
  const parsed =
    text === undefined ? undefined : parseInteger(toAsciiDigits(strip(text, undefined)), requireIndex(base));
  if (parsed !== undefined) return parsed;
  const number =
    value instanceof Float ? value.value : text === undefined ? undefined : parseFloatText(strip(text, undefined));
  // int() of an infinite float raises what the filter does not catch, of an infinite text what it
  // does.
  if (number === undefined || Number.isNaN(number) || (text !== undefined && !Number.isFinite(number))) return fallback;
  return truncateFloat(number);
}

function toFloat(value: Value, [fallback = new Float(0)]: readonly (Value | undefined)[]): Value {
  requireDefined(value);
  const text = asPlainString(value);
  const number = text === undefined ? asNumber(value) : parseFloatText(toAsciiDigits(strip(text, undefined)));
  return number === undefined ? fallback : new Float(number);
}

function round(value: Value, [precision = 0, method = "common"]: readonly (Value | undefined)[]): Value {
  const name = asPlainString(method) ?? "";
  if (!["common", "ceil", "floor"].includes(name)) throw new Error("method must be common, ceil or floor");
  requireDefined(value);
  const number = value instanceof Float ? value : asInt(value);
  if (number === undefined) throw new Error(`type ${getPythonType(value)} doesn't define __round__ method`);
  if (name === "common") {
    if (precision === null) return number instanceof Float ? truncateFloat(roundFloat(number.value, 0)) : toInt(number);
    const places = requireIndex(precision);
    return number instanceof Float
      ? new Float(roundFloat(number.value, places))
      : toInt(roundInteger(BigInt(number), places));
  }
  const scale = calculate("**", 10, toInt(asInt(precision) ?? 0));
  const factor = scale instanceof Float ? scale : (asInt(scale) ?? 1);
  const scaled = calculate("*", number, factor);
  const roundUpOrDown = name === "ceil" ? Math.ceil : Math.floor;
  const whole = scaled instanceof Float ? truncateFloat(roundUpOrDown(scaled.value)) : toInt(asInt(scaled) ?? 0);
  return calculate("/", whole, factor);
}

function absolute(value: Value): Value {
  requireDefined(value);
  if (value instanceof Float) return new Float(Math.abs(value.value));
  const integer = asInt(value);
  if (integer === undefined) throw new Error(`bad operand type for abs(): '${getPythonType(value)}'`);
  return integer < 0 ? calculate("-", 0, integer) : toInt(integer);
}

/** Filters of numbers. */
export const numberFilters: ReadonlyMap<string, FilterFunction> = new Map<string, FilterFunction>([
  ["int", defineFilter(["default=", "base="], toInteger)],
  ["float", defineFilter(["default="], toFloat)],
  ["round", defineFilter(["precision=", "method="], round)],
  ["abs", defineFilter([], absolute)],
]);
