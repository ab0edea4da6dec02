import { toFixedDigits, toSignificantDigits } from "./decimal.js";
import { repeatText } from "./limits.js";
import type { Int } from "./numbers.js";
import { formatFloat } from "./python-text.js";

/** Maximum decimal places; the widest float has 1,074. */
const MAX_PRECISION = 2000;

/**
 * Formats |value| as type e, f, g, % or "" (repr-like), without a sign. `alternate` is the flag #.
 */
export function formatMagnitude(
  value: number,
  type: string,
  precision: number | undefined,
  alternate: boolean,
): string {
  const size = Math.abs(value);
  if (precision !== undefined && precision > MAX_PRECISION) throw new Error("precision too big");
  if (!Number.isFinite(size)) {
    const name = Number.isNaN(size) ? "nan" : "inf";
    return type === "%" ? `${name}%` : /[EFG]/.test(type) ? name.toUpperCase() : name;
  }
  switch (type) {
    case "e":
    case "E":
      return formatExponent(size, precision ?? 6, alternate, type);
    case "f":
    case "F":
      return toFixedDigits(size, precision ?? 6) + (alternate && precision === 0 ? "." : "");
    case "%":
      return `${toFixedDigits(size * 100, precision ?? 6)}%`;
    case "":
      return precision === undefined ? formatFloat(size) : formatGeneral(size, precision, alternate, "g", true);
    default:
      return formatGeneral(size, precision ?? 6, alternate, type, false);
  }
}

function formatExponent(size: number, places: number, alternate: boolean, letter: string): string {
  const { digits, exponent } = toSignificantDigits(size, places + 1);
  const point = places > 0 || alternate ? "." : "";
  return digits[0] + point + digits.slice(1) + formatPower(exponent, letter);
}

const formatPower = (exponent: number, letter: string) =>
  `${letter}${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;

/** Type g; `isRepr` is format() without a type, which keeps one decimal place. */
function formatGeneral(size: number, precision: number, alternate: boolean, type: string, isRepr: boolean): string {
  const count = precision === 0 ? 1 : precision;
  const { digits, exponent } = toSignificantDigits(size, count);
  const kept = alternate ? digits : digits.replace(/0+$/, "") || "0";
  const isExponential = exponent < -4 || exponent >= (isRepr ? count - 1 : count);
  if (isExponential && !(isRepr && exponent < count - 1 && exponent >= -4)) {
    const point = kept.length > 1 || alternate ? "." : "";
    return kept[0] + point + kept.slice(1) + formatPower(exponent, type === "G" ? "E" : "e");
  }
  if (exponent < 0) return `0.${"0".repeat(-exponent - 1)}${kept}`;
  const whole = kept.slice(0, exponent + 1).padEnd(exponent + 1, "0");
  const fraction = kept.slice(exponent + 1);
  if (fraction !== "" || alternate) return `${whole}.${fraction}`;
  return isRepr ? `${whole}.0` : whole;
}

const bases: Readonly<Record<string, number>> = { b: 2, o: 8, x: 16, X: 16, d: 10, i: 10, u: 10, n: 10 };

/** Formats |value| in the base of a type: b, o, x, X or d. */
export function formatIntMagnitude(value: Int, type: string): string {
  const integer = BigInt(value);
  const digits = (integer < 0n ? -integer : integer).toString(bases[type]);
  return type === "X" ? digits.toUpperCase() : digits;
}

/** Groups the whole digits of a number by thousands, or by fours for other bases. */
export function groupDigits(text: string, separator: string, size = 3, minimumWidth = 0): string {
  const match = /^([0-9a-fA-F]+)(.*)$/.exec(text);
  if (!match) return text;
  let whole = match[1];
  const grouped = (digits: string) => {
    const groups: string[] = [];
    for (let end = digits.length; end > 0; end -= size) groups.unshift(digits.slice(Math.max(0, end - size), end));
    return groups.join(separator);
  };
  // Zeros that fill the width are grouped too.
  while (grouped(whole).length + match[2].length < minimumWidth) whole = `0${whole}`;
  const result = grouped(whole) + match[2];
  return result;
}

/** Pads a text to a width in characters. */
export function pad(text: string, length: number, width: number, align: string, fill: string): string {
  const missing = Math.max(0, width - length);
  if (missing === 0) return text;
  const left = align === "<" ? 0 : align === "^" ? Math.floor(missing / 2) : missing;
  return repeatText(fill, left) + text + repeatText(fill, missing - left);
}
