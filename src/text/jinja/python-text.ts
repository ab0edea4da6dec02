import type { Value } from "@huggingface/jinja";

import { contentOf, dictEntries, isUndefined, listItems, numberOf, stringOf } from "./values.js";

/** A value as Python's str() writes it: what a template prints. */
export function pythonString(value: Value): string {
  if (isUndefined(value)) return "";
  return stringOf(value) ?? pythonRepresentation(value);
}

/** A value as Python's repr() writes it: what stands inside a printed list. */
function pythonRepresentation(value: Value): string {
  const text = stringOf(value);
  if (text !== undefined) return quote(text);
  const items = listItems(value);
  if (items) {
    const inside = items.map(pythonRepresentation).join(", ");
    if (value.type !== "TupleValue") return `[${inside}]`;
    return items.length === 1 ? `(${inside},)` : `(${inside})`;
  }
  const entries = dictEntries(value);
  if (entries) {
    const inside = Array.from(entries, ([key, item]) => `${quote(key)}: ${pythonRepresentation(item)}`).join(", ");
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
      return numberText(value);
  }
}

/** How json.dumps is asked to write. */
export interface JsonStyle {
  readonly indent?: string;
  readonly separators?: readonly [item: string, key: string];
  readonly ensureAscii?: boolean;
  readonly sortKeys?: boolean;
}

/** A value as Python's json.dumps writes it. */
export function pythonJson(value: Value, style: JsonStyle = {}, depth = 0): string {
  const [itemSeparator, keySeparator] = style.separators ?? [style.indent === undefined ? ", " : ",", ": "];
  const bracket = (open: string, parts: string[], close: string) => {
    if (parts.length === 0 || style.indent === undefined) return open + parts.join(itemSeparator) + close;
    const outer = `\n${style.indent.repeat(depth)}`;
    const inner = outer + style.indent;
    return open + inner + parts.join(itemSeparator + inner) + outer + close;
  };
  const text = stringOf(value);
  if (text !== undefined) return jsonString(text, style);
  const items = listItems(value);
  if (items)
    return bracket(
      "[",
      items.map((item) => pythonJson(item, style, depth + 1)),
      "]",
    );
  const entries = dictEntries(value);
  if (entries && value.type !== "NamespaceValue") {
    const keys = Array.from(entries);
    if (style.sortKeys) keys.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
    const parts = keys.map(([key, item]) => jsonString(key, style) + keySeparator + pythonJson(item, style, depth + 1));
    return bracket("{", parts, "}");
  }
  switch (value.type) {
    case "NullValue":
      return "null";
    case "BooleanValue":
      return value.value === true ? "true" : "false";
    case "IntegerValue":
    case "FloatValue":
      return numberText(value);
    default:
      throw new Error(`Object of type ${value.type.replace("Value", "")} is not JSON serializable`);
  }
}

function jsonString(text: string, { ensureAscii }: JsonStyle): string {
  const quoted = JSON.stringify(text);
  if (!ensureAscii) return quoted;
  return quoted.replace(/[\u007f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** Python writes a whole float with .0, and uses exponents below 1e-4 and from 1e16 on. */
function numberText(value: Value): string {
  const number = numberOf(value) ?? 0;
  if (contentOf(value, "FloatValue") === undefined) {
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
  const mark = text.includes("'") && !text.includes('"') ? '"' : "'";
  const escapes: Record<string, string> = { "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", [mark]: `\\${mark}` };
  const inside = text.replace(/[\\'"]|[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu, (character) => {
    const known = escapes[character];
    if (known !== undefined) return known;
    if (character === "'" || character === '"') return character;
    const code = character.codePointAt(0) ?? 0;
    if (code < 0x100) return `\\x${code.toString(16).padStart(2, "0")}`;
    return code < 0x10000 ? `\\u${code.toString(16).padStart(4, "0")}` : `\\U${code.toString(16).padStart(8, "0")}`;
  });
  return mark + inside + mark;
}
