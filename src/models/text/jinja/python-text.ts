import { contentMarks } from "./content-marks.js";
import { joinTexts, repeatText, spendSteps, spendText } from "./limits.js";
import {
  Float,
  Namespace,
  Undefined,
  type Value,
  asNumber,
  dictEntries,
  getPythonType,
  isList,
  listItems,
} from "./values.js";

/** Formats a value as Python's str(), which templates print. */
export function toPythonString(value: Value): string {
  if (value instanceof Undefined) return "";
  return typeof value === "string" ? value : toPythonRepr(value);
}

/** Formats a value as Python's repr(), as inside printed lists. */
function toPythonRepr(value: Value): string {
  spendSteps(1);
  if (typeof value === "string") return quote(value);
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  const items = listItems(value);
  if (items) {
    const inside = joinTexts(items.map(toPythonRepr), ", ");
    if (isList(value)) return `[${inside}]`;
    return items.length === 1 ? `(${inside},)` : `(${inside})`;
  }
  const entries = dictEntries(value);
  if (entries) {
    const parts = Array.from(entries, ([key, item]) => `${quote(key)}: ${toPythonRepr(item)}`);
    const inside = joinTexts(parts, ", ");
    return value instanceof Namespace ? `<Namespace {${inside}}>` : `{${inside}}`;
  }
  if (typeof value === "number" || value instanceof Float) return formatNumber(value);
  return value instanceof Undefined ? "Undefined" : `<${getPythonType(value)}>`;
}

/** Options of json.dumps. */
export interface JsonFormat {
  readonly indent?: string;
  readonly separators?: readonly [item: string, key: string];
  readonly ensureAscii?: boolean;
  readonly sortKeys?: boolean;
}

/** Formats a value as Python's json.dumps. */
export function toPythonJson(value: Value, style: JsonFormat = {}, depth = 0): string {
  spendSteps(1);
  if (value === null || typeof value === "boolean") return String(value);
  if (typeof value === "number" || value instanceof Float) return formatNumber(value);
  if (typeof value === "string") return formatJsonString(value, style);
  const [itemSeparator, keySeparator] = style.separators ?? [style.indent === undefined ? ", " : ",", ": "];
  const bracket = (open: string, parts: string[], close: string) => {
    if (parts.length === 0 || style.indent === undefined) return open + joinTexts(parts, itemSeparator) + close;
    const outer = `\n${repeatText(style.indent, depth)}`;
    const inner = outer + style.indent;
    return open + inner + joinTexts(parts, itemSeparator + inner) + outer + close;
  };
  const format = (item: Value) => toPythonJson(item, style, depth + 1);
  const items = listItems(value);
  if (items) return bracket("[", items.map(format), "]");
  const entries = dictEntries(value);
  if (!entries || value instanceof Namespace)
    throw new Error(`Object of type ${getPythonType(value)} is not JSON serializable`);
  const keys = Array.from(entries);
  if (style.sortKeys) keys.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  const parts = keys.map(([key, item]) => formatJsonString(key, style) + keySeparator + format(item));
  return bracket("{", parts, "}");
}

function formatJsonString(text: string, { ensureAscii }: JsonFormat): string {
  spendText(text.length);
  const marks = contentMarks();
  const escape = (character: string) => {
    const json = JSON.stringify(character).slice(1, -1);
    if (!ensureAscii) return json;
    return json.replace(/[\u007f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
  };
  const quoted = JSON.stringify(marks.restore(text, (character) => escape(character) !== character));
  if (!ensureAscii) return quoted;
  return quoted.replace(/[\u007f-\u{10ffff}]/gu, (character) =>
    marks.isMark(character) ? character : escape(character),
  );
}

/** Formats a float as Python: whole floats with .0, exponents below 1e-4 and from 1e16 on. */
function formatNumber(value: number | Float): string {
  const number = asNumber(value) ?? 0;
  if (!(value instanceof Float)) return Number.isSafeInteger(number) ? String(number) : BigInt(number).toString();
  if (Number.isNaN(number)) return "nan";
  if (!Number.isFinite(number)) return number > 0 ? "inf" : "-inf";
  const [digits, exponent] = number.toExponential().split("e");
  const power = Number(exponent);
  if (power < -4 || power >= 16) return `${digits}e${power < 0 ? "-" : "+"}${String(Math.abs(power)).padStart(2, "0")}`;
  if (Object.is(number, -0)) return "-0.0";
  return Number.isInteger(number) ? `${number}.0` : String(number);
}

/** Characters that Python's repr escapes. */
const ESCAPED = /[\\'"]|[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/u;

function quote(text: string): string {
  spendText(text.length);
  const marks = contentMarks();
  const plain = marks.unmark(text);
  const quoteMark = plain.includes("'") && !plain.includes('"') ? '"' : "'";
  const escapes: Record<string, string> = {
    "\\": "\\\\",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    [quoteMark]: `\\${quoteMark}`,
  };
  const restored = marks.restore(text, (character) => ESCAPED.test(character));
  const inside = restored.replace(new RegExp(ESCAPED, "gu"), (character) => {
    if (marks.isMark(character)) return character;
    const escape = escapes[character];
    if (escape !== undefined) return escape;
    if (character === "'" || character === '"') return character;
    const code = character.codePointAt(0) ?? 0;
    if (code < 0x100) return `\\x${code.toString(16).padStart(2, "0")}`;
    return code < 0x10000 ? `\\u${code.toString(16).padStart(4, "0")}` : `\\U${code.toString(16).padStart(8, "0")}`;
  });
  return quoteMark + inside + quoteMark;
}
