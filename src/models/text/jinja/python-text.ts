import { replaceMarked, unmarked } from "./content-marks.js";
import { PythonDict, DictView } from "./dict.js";
import { joinTexts, spendSteps, spendText } from "./limits.js";
import type { Int } from "./numbers.js";
import {
  Bytes,
  Float,
  Markup,
  Namespace,
  type PythonObject,
  PythonRange,
  PythonTuple,
  Undefined,
  type Value,
  isList,
} from "./values.js";

/** Maximum digits that Python prints of an integer. */
const MAX_INTEGER_DIGITS = 4300;

/** Formats a value as Python's str(), which templates print. */
export function toPythonString(value: Value): string {
  if (typeof value === "string") return value;
  if (value instanceof Undefined) return "";
  return value instanceof Markup ? value.text : toPythonRepr(value);
}

/** Formats a value as Python's repr(), as inside printed lists. */
export function toPythonRepr(value: Value): string {
  spendSteps(1);
  switch (typeof value) {
    case "string":
      return quote(value);
    case "boolean":
      return value ? "True" : "False";
    case "number":
    case "bigint":
      return formatInt(value);
    case "function":
      throw unprintable("a function");
    default:
      return value === null ? "None" : isList(value) ? `[${formatItems(value)}]` : formatObject(value);
  }
}

const formatItems = (items: readonly Value[]) => joinTexts(items.map(toPythonRepr), ", ");

function formatEntries(entries: readonly (readonly [Value, Value])[]): string {
  const parts = entries.map(([key, item]) => `${toPythonRepr(key)}: ${toPythonRepr(item)}`);
  return `{${joinTexts(parts, ", ")}}`;
}

function formatObject(value: PythonObject): string {
  if (value instanceof Float) return formatFloat(value.value);
  if (value instanceof PythonTuple)
    return value.items.length === 1 ? `(${toPythonRepr(value.items[0])},)` : `(${formatItems(value.items)})`;
  if (value instanceof PythonDict) return formatEntries(value.entries());
  if (value instanceof DictView) return `${value.type}([${formatItems(value.toArray())}])`;
  if (value instanceof Namespace) return `<Namespace ${formatEntries(Array.from(value.entries))}>`;
  if (value instanceof Markup) return `Markup(${quote(value.text)})`;
  if (value instanceof Bytes) return formatBytes(value.bytes);
  if (value instanceof PythonRange) {
    const step = value.step === 1 ? "" : `, ${value.step}`;
    return `range(${value.start}, ${value.stop}${step})`;
  }
  if (value instanceof Undefined) return "Undefined";
  const description = value.getAttribute("__repr__");
  if (typeof description === "string") return description;
  throw unprintable(`a ${value.type}`);
}

/** Creates the error for what Python prints with its memory address. */
function unprintable(name: string): Error {
  return new Error(`${name} is printed, not its value: call the function, or apply the filter list`);
}

/** Formats an integer. @throws for one that Python does not print. */
export function formatInt(value: Int): string {
  const text = String(value);
  if (text.length > MAX_INTEGER_DIGITS && text.replace("-", "").length > MAX_INTEGER_DIGITS)
    throw new Error(`Exceeds the limit (${MAX_INTEGER_DIGITS} digits) for integer string conversion`);
  return text;
}

/** Formats a float as Python: whole floats with .0, exponents below 1e-4 and from 1e16 on. */
export function formatFloat(number: number): string {
  if (Number.isNaN(number)) return "nan";
  if (!Number.isFinite(number)) return number > 0 ? "inf" : "-inf";
  const [digits, exponent] = number.toExponential().split("e");
  const power = Number(exponent);
  if (power < -4 || power >= 16) return `${digits}e${power < 0 ? "-" : "+"}${String(Math.abs(power)).padStart(2, "0")}`;
  if (Object.is(number, -0)) return "-0.0";
  return Number.isInteger(number) ? `${number}.0` : String(number);
}

const escapes: Readonly<Record<string, string>> = { "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t" };

function quote(text: string): string {
  spendText(text.length);
  const plain = unmarked(text);
  const quoteMark = plain.includes("'") && !plain.includes('"') ? '"' : "'";
  const inside = replaceMarked(text, /[\\'"]|[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu, (character) => {
    if (character === quoteMark) return `\\${character}`;
    if (character === "'" || character === '"') return character;
    return escapes[character] ?? escapeCodePoint(character.codePointAt(0) ?? 0);
  });
  return quoteMark + inside + quoteMark;
}

/** Returns Python's escape of a character. */
export function escapeCodePoint(code: number): string {
  if (code < 0x100) return `\\x${code.toString(16).padStart(2, "0")}`;
  return code < 0x10000 ? `\\u${code.toString(16).padStart(4, "0")}` : `\\U${code.toString(16).padStart(8, "0")}`;
}

function formatBytes(bytes: Uint8Array): string {
  const text = String.fromCharCode(...bytes);
  const quoteMark = text.includes("'") && !text.includes('"') ? '"' : "'";
  const inside = text.replace(/[\\'"]|[^ -~]/g, (character) => {
    if (character === quoteMark) return `\\${character}`;
    if (character === "'" || character === '"') return character;
    return escapes[character] ?? escapeCodePoint(character.charCodeAt(0));
  });
  return `b${quoteMark}${inside}${quoteMark}`;
}

/** Python's ascii(): repr with escapes for all other characters. */
export function toAscii(value: Value): string {
  return toPythonRepr(value).replace(/[^\0-\x7f]/gu, (character) => escapeCodePoint(character.codePointAt(0) ?? 0));
}
