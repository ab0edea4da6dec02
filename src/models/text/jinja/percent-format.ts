import { countCharacters, sliceCharacters } from "./code-points.js";
import { PythonDict } from "./dict.js";
import { formatIntMagnitude, formatMagnitude, pad } from "./format-number.js";
import { spendText } from "./limits.js";
import { type Int, asInt, asNumber, truncateFloat } from "./numbers.js";
import { toAscii, toPythonRepr, toPythonString } from "./python-text.js";
import {
  Bytes,
  Float,
  PythonRange,
  PythonTuple,
  Undefined,
  type Value,
  asString,
  getPythonType,
  isList,
  requireDefined,
} from "./values.js";

/** Types of values that need not be used, because they may be mappings. */
const mappings = [PythonDict, PythonRange, Bytes, Undefined];

/** Python's `text % values`. */
export function percentFormat(text: string, values: Value): string {
  const list = values instanceof PythonTuple ? values.items : undefined;
  const isMapping = isList(values) || mappings.some((type) => values instanceof type);
  let used = 0;
  const next = (): Value => {
    if (list ? used >= list.length : used > 0) throw new Error("not enough arguments for format string");
    used++;
    return list ? list[used - 1] : values;
  };
  const pattern = /%(?:\(((?:[^()]|\([^()]*\))*)\))?([#0\- +]*)(\*|\d+)?(\.(\*|\d+)?)?[hlL]?(.)?/gsu;
  const formatted = text.replace(
    pattern,
    (field, key: string | undefined, flags: string, width, dot, precision, type) => {
      if (type === undefined) throw new Error("incomplete format");
      if (type === "%" && field === "%%") return "%";
      const readSize = (size: string | undefined) => (size === "*" ? requireSize(next()) : Number(size ?? 0));
      const fieldWidth = readSize(width);
      const fieldPrecision = dot === undefined ? undefined : readSize(precision);
      if (type === "%") return "%";
      const value = key === undefined ? next() : readKey(values, key);
      const isLeft = flags.includes("-") || fieldWidth < 0;
      const result = formatField(value, type, flags, fieldPrecision);
      const size = Math.abs(fieldWidth);
      const isZero = flags.includes("0") && !isLeft && !/[sracS]/.test(type);
      const padded = isZero
        ? result.sign + pad(result.text, result.text.length, size - result.sign.length, ">", "0")
        : pad(result.sign + result.text, countCharacters(result.sign + result.text), size, isLeft ? "<" : ">", " ");
      spendText(padded.length);
      return padded;
    },
  );
  if (list ? used < list.length : used === 0 && !isMapping && !usesKeys(text))
    throw new Error("not all arguments converted during string formatting");
  return formatted;
}

const usesKeys = (text: string) => /%\(/.test(text);

function requireSize(value: Value): number {
  const size = asInt(value);
  if (size === undefined) throw new Error("* wants int");
  return Number(size);
}

function readKey(values: Value, key: string): Value {
  requireDefined(values);
  if (!(values instanceof PythonDict)) throw new Error("format requires a mapping");
  const value = values.get(key);
  if (value === undefined) throw new Error(`'${key}'`);
  return value;
}

function formatField(
  value: Value,
  type: string,
  flags: string,
  precision: number | undefined,
): { readonly sign: string; readonly text: string } {
  const cut = (text: string) => ({
    sign: "",
    text: precision === undefined ? text : sliceCharacters(text, 0, precision),
  });
  if (type === "s") return cut(toPythonString(value));
  if (type === "r") return cut(toPythonRepr(value));
  if (type === "a") return cut(toAscii(value));
  if (type === "c") return { sign: "", text: formatCharacter(value) };
  const positive = flags.includes("+") ? "+" : flags.includes(" ") ? " " : "";
  if (/[diuxXo]/.test(type)) {
    const integer = readInteger(value, type);
    const digits = formatIntMagnitude(integer, type);
    const prefix = flags.includes("#") && /[xXo]/.test(type) ? `0${type}` : "";
    return { sign: (integer < 0 ? "-" : positive) + prefix, text: digits.padStart(precision ?? 0, "0") };
  }
  if (!/[eEfFgG]/.test(type)) throw new Error(`unsupported format character '${type}'`);
  const number = asNumber(value);
  if (value instanceof Undefined) requireDefined(value);
  if (number === undefined) throw new Error(`must be real number, not ${getPythonType(value)}`);
  const isNegative = number < 0 || Object.is(number, -0);
  return {
    sign: isNegative ? "-" : positive,
    text: formatMagnitude(number, type, precision ?? 6, flags.includes("#")),
  };
}

function formatCharacter(value: Value): string {
  const text = asString(value);
  if (text !== undefined && countCharacters(text) === 1) return text;
  const code = asInt(value);
  if (code === undefined || text !== undefined) throw new Error("%c requires int or char");
  return String.fromCodePoint(Number(code));
}

function readInteger(value: Value, type: string): Int {
  if (value instanceof Float && /[diu]/.test(type)) return truncateFloat(value.value);
  const integer = asInt(value);
  if (value instanceof Undefined) requireDefined(value);
  if (integer === undefined) throw new Error(`%${type} format: a number is required, not ${getPythonType(value)}`);
  return integer;
}
