import type { Value } from "@huggingface/jinja";

import { getContent, dictEntries, isUndefined, listItems, asNumber, asString } from "./values.js";

/** Formats a value as Python's str(), which templates print. */
export function toPythonString(value: Value): string {
  if (isUndefined(value)) return "";
  return asString(value) ?? toPythonRepr(value);
}

/** Formats a value as Python's repr(), as inside printed lists. */
function toPythonRepr(value: Value): string {
  const text = asString(value);
  if (text !== undefined) return quote(text);
  const items = listItems(value);
  if (items) {
    const inside = items.map(toPythonRepr).join(", ");
    if (value.type !== "TupleValue") return `[${inside}]`;
    return items.length === 1 ? `(${inside},)` : `(${inside})`;
  }
  const entries = dictEntries(value);
  if (entries) {
    const inside = Array.from(entries, ([key, item]) => `${quote(key)}: ${toPythonRepr(item)}`).join(", ");
    return value.type === "NamespaceValue" ? `<Namespace {${inside}}>` : `{${inside}}`;
  }
  switch (value.type) {
    case "BooleanValue":
      return value.value === true ? "True" : "False";
    case "NullValue":
      return "None";
    case "UndefinedValue":
      return "Undefined";
    case "FunctionValue":
      return "<function>";
    default:
      return formatNumber(value);
  }
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
  const [itemSeparator, keySeparator] = style.separators ?? [style.indent === undefined ? ", " : ",", ": "];
  const bracket = (open: string, parts: string[], close: string) => {
    if (parts.length === 0 || style.indent === undefined) return open + parts.join(itemSeparator) + close;
    const outer = `\n${style.indent.repeat(depth)}`;
    const inner = outer + style.indent;
    return open + inner + parts.join(itemSeparator + inner) + outer + close;
  };
  const text = asString(value);
  if (text !== undefined) return formatJsonString(text, style);
  const items = listItems(value);
  if (items)
    return bracket(
      "[",
      items.map((item) => toPythonJson(item, style, depth + 1)),
      "]",
    );
  const entries = dictEntries(value);
  if (entries && value.type !== "NamespaceValue") {
    const keys = Array.from(entries);
    if (style.sortKeys) keys.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
    const parts = keys.map(
      ([key, item]) => formatJsonString(key, style) + keySeparator + toPythonJson(item, style, depth + 1),
    );
    return bracket("{", parts, "}");
  }
  switch (value.type) {
    case "NullValue":
      return "null";
    case "BooleanValue":
      return value.value === true ? "true" : "false";
    case "IntegerValue":
    case "FloatValue":
      return formatNumber(value);
    default:
      throw new Error(`Object of type ${value.type.replace("Value", "")} is not JSON serializable`);
  }
}

function formatJsonString(text: string, { ensureAscii }: JsonFormat): string {
  const quoted = JSON.stringify(text);
  if (!ensureAscii) return quoted;
  return quoted.replace(/[\u007f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** Formats a float as Python: whole floats with .0, exponents below 1e-4 and from 1e16 on. */
function formatNumber(value: Value): string {
  const number = asNumber(value) ?? 0;
  if (getContent(value, "FloatValue") === undefined) {
    return Number.isSafeInteger(number) ? String(number) : BigInt(number).toString();
  }
  if (Number.isNaN(number)) return "nan";
  if (!Number.isFinite(number)) return number > 0 ? "inf" : "-inf";
  const [digits, exponent] = number.toExponential().split("e");
  const power = Number(exponent);
  if (power < -4 || power >= 16) {
    return `${digits}e${power < 0 ? "-" : "+"}${String(Math.abs(power)).padStart(2, "0")}`;
  }
  if (Object.is(number, -0)) return "-0.0";
  return Number.isInteger(number) ? `${number}.0` : String(number);
}

function quote(text: string): string {
  const quoteMark = text.includes("'") && !text.includes('"') ? '"' : "'";
  const escapes: Record<string, string> = {
    "\\": "\\\\",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    [quoteMark]: `\\${quoteMark}`,
  };
  const inside = text.replace(/[\\'"]|[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu, (character) => {
    const escape = escapes[character];
    if (escape !== undefined) return escape;
    if (character === "'" || character === '"') return character;
    const code = character.codePointAt(0) ?? 0;
    if (code < 0x100) return `\\x${code.toString(16).padStart(2, "0")}`;
    return code < 0x10000 ? `\\u${code.toString(16).padStart(4, "0")}` : `\\U${code.toString(16).padStart(8, "0")}`;
  });
  return quoteMark + inside + quoteMark;
}
