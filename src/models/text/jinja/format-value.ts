import { countCharacters, sliceCharacters } from "./code-points.js";
import { unmarked } from "./content-marks.js";
import { formatIntMagnitude, formatMagnitude, groupDigits, pad } from "./format-number.js";
import { type Int, asInt } from "./numbers.js";
import { toPythonString } from "./python-text.js";
import { Float, type Value, asString, getPythonType } from "./values.js";

interface FormatSpec {
  readonly fill: string;
  readonly align: string;
  readonly sign: string;
  readonly alternate: boolean;
  readonly width: number;
  readonly grouping: string;
  readonly precision: number | undefined;
  readonly type: string;
}

/** Python's format(value, spec). */
export function formatValue(value: Value, spec: string): string {
  if (spec === "") return toPythonString(value);
  const parsed = parseSpec(unmarked(spec), value);
  const text = asString(value);
  if (text !== undefined) return formatText(text, parsed);
  const integer = asInt(value);
  if (integer !== undefined && !/[eEfFgG%]/.test(parsed.type)) return formatInteger(integer, parsed);
  if (integer !== undefined) return formatReal(Number(integer), parsed);
  if (value instanceof Float) return formatReal(value.value, parsed);
  throw new Error(`unsupported format string passed to ${getPythonType(value)}.__format__`);
}

function parseSpec(spec: string, value: Value): FormatSpec {
  const match = /^(?:(.)?([<>=^]))?([+\- ])?(z)?(#)?(0)?(\d+)?([,_])?(?:\.(\d+))?([a-zA-Z%])?$/su.exec(spec);
  if (!match) throw new Error(`Invalid format specifier '${spec}' for object of type '${getPythonType(value)}'`);
  const [, fill, align, sign = "", negativeZero, alternate, zero, width = "0", grouping = "", precision, type = ""] =
    match;
  if (negativeZero !== undefined) throw new Error("the format option z is not supported");
  return {
    fill: fill ?? (zero === undefined ? " " : "0"),
    // Text is aligned to the left even when it is filled with zeros.
    align: align ?? (zero !== undefined && asString(value) === undefined ? "=" : ""),
    sign,
    alternate: alternate !== undefined,
    width: Number(width),
    grouping,
    precision: precision === undefined ? undefined : Number(precision),
    type,
  };
}

function formatText(
  text: string,
  { fill, align, sign, alternate, width, grouping, precision, type }: FormatSpec,
): string {
  if (type !== "" && type !== "s") throw new Error(`Unknown format code '${type}' for object of type 'str'`);
  if (sign !== "") throw new Error("Sign not allowed in string format specifier");
  if (alternate) throw new Error("Alternate form (#) not allowed in string format specifier");
  if (grouping !== "") throw new Error(`Cannot specify '${grouping}' with 's'.`);
  if (align === "=") throw new Error("'=' alignment not allowed in string format specifier");
  const kept = precision === undefined ? text : sliceCharacters(text, 0, precision);
  return pad(kept, countCharacters(kept), width, align || "<", fill);
}

function formatInteger(value: Int, spec: FormatSpec): string {
  const { type, precision } = spec;
  if (precision !== undefined) throw new Error("Precision not allowed in integer format specifier");
  if (type === "c")
    return formatText(String.fromCodePoint(Number(value)), { ...spec, type: "", align: spec.align || "<" });
  if (!/^[bdnoxX]?$/.test(type)) throw new Error(`Unknown format code '${type}' for object of type 'int'`);
  if (spec.grouping === "," && /[boxX]/.test(type)) throw new Error(`Cannot specify ',' with '${type}'.`);
  const digits = formatIntMagnitude(value, type || "d");
  const prefix = spec.alternate && /[boxX]/.test(type) ? `0${type}` : "";
  return assemble(value < 0, prefix, digits, spec, /[boxX]/.test(type) ? 4 : 3);
}

function formatReal(value: number, spec: FormatSpec): string {
  const { type, precision, alternate } = spec;
  if (!/^[eEfFgGn%]?$/.test(type)) throw new Error(`Unknown format code '${type}' for object of type 'float'`);
  const digits = formatMagnitude(value, type === "n" ? "g" : type, precision, alternate);
  return assemble(value < 0 || Object.is(value, -0), "", digits, spec, 3);
}

function assemble(isNegative: boolean, prefix: string, digits: string, spec: FormatSpec, groupSize: number): string {
  const sign = (isNegative ? "-" : spec.sign === "-" ? "" : spec.sign) + prefix;
  const { align, fill, width, grouping } = spec;
  const isZeroFilled = align === "=" && fill === "0";
  const body = grouping ? groupDigits(digits, grouping, groupSize, isZeroFilled ? width - sign.length : 0) : digits;
  if (align === "=") return sign + pad(body, body.length, width - sign.length, ">", fill);
  return pad(sign + body, sign.length + body.length, width, align || ">", fill);
}
