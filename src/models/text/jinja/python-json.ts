import { compare } from "./comparison.js";
import { replaceMarked } from "./content-marks.js";
import { PythonDict } from "./dict.js";
import { joinTexts, repeatText, spendSteps, spendText } from "./limits.js";
import { formatFloat, formatInt } from "./python-text.js";
import { Float, type Value, asString, getPythonType, listItems } from "./values.js";

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
  const plain = formatScalar(value);
  if (plain !== undefined) return plain;
  const text = asString(value);
  if (text !== undefined) return formatJsonString(text, style);
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
  if (!(value instanceof PythonDict))
    throw new Error(`Object of type ${getPythonType(value)} is not JSON serializable`);
  const entries = value.entries();
  if (style.sortKeys) entries.sort(([a], [b]) => compare(a, b));
  const parts = entries.map(([key, item]) => formatJsonString(toKey(key), style) + keySeparator + format(item));
  return bracket("{", parts, "}");
}

/** Formats None, a boolean or a number. */
function formatScalar(value: Value): string | undefined {
  if (value === null || typeof value === "boolean") return String(value);
  if (typeof value === "number" || typeof value === "bigint") return formatInt(value);
  if (!(value instanceof Float)) return undefined;
  if (Number.isFinite(value.value)) return formatFloat(value.value);
  return Number.isNaN(value.value) ? "NaN" : value.value > 0 ? "Infinity" : "-Infinity";
}

function toKey(key: Value): string {
  const text = asString(key) ?? formatScalar(key);
  if (text === undefined) throw new Error(`keys must be str, int, float, bool or None, not ${getPythonType(key)}`);
  return text;
}

const jsonEscapes: Readonly<Record<string, string>> = {
  '"': '\\"',
  "\\": "\\\\",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
  "\b": "\\b",
  "\f": "\\f",
};

function formatJsonString(text: string, { ensureAscii }: JsonFormat): string {
  spendText(text.length);
  const special = ensureAscii ? /[^ -~\x7f]|["\\]/g : /[^ -\uffff]|["\\]/g;
  const inside = replaceMarked(
    text,
    special,
    (unit) => jsonEscapes[unit] ?? `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  return `"${inside}"`;
}
