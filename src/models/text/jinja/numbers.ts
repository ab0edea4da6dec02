import { limitError } from "./limits.js";
import { Float, Undefined, type Value, requireDefined } from "./values.js";

/** An integer; a bigint only beyond the safe integers. */
export type Int = number | bigint;

/** Maximum bits of an integer; printing one of 20,000 bits takes a millisecond. */
const MAX_INTEGER_BITS = 20_000;

/** Returns the integer as a number if that is exact. */
export function toInt(value: Int): Int {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : BigInt(value);
}

/** Returns an integer or boolean as an integer, or undefined. */
export function asInt(value: Value | undefined): Int | undefined {
  if (typeof value === "boolean") return Number(value);
  return typeof value === "number" || typeof value === "bigint" ? value : undefined;
}

/** Returns the number in an integer, float or boolean, or undefined; one beyond 2^53 is rounded. */
export function asNumber(value: Value | undefined): number | undefined {
  if (value instanceof Float) return value.value;
  const integer = asInt(value);
  return integer === undefined ? undefined : Number(integer);
}

/** Returns an index or count. @throws for anything but an integer. */
export function requireIndex(value: Value): number {
  const integer = asInt(value);
  if (value instanceof Undefined) requireDefined(value);
  if (integer === undefined) throw new Error("an integer is required");
  return Number(integer);
}

/** Compares numbers of either kind exactly: negative, zero, positive, or NaN. */
export function compareNumbers(left: Int | Float, right: Int | Float): number {
  const a = left instanceof Float ? left.value : left;
  const b = right instanceof Float ? right.value : right;
  if (Number.isNaN(a) || Number.isNaN(b)) return Number.NaN;
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Evaluates + - * / // % ** of numbers. */
export function calculate(operator: string, left: Int | Float, right: Int | Float): Value {
  const isFloat = left instanceof Float || right instanceof Float;
  const [x, y] = [left, right].map((operand) => (operand instanceof Float ? operand.value : Number(operand)));
  if (y === 0 && (operator === "/" || operator === "//" || operator === "%")) throw new Error("division by zero");
  if (operator === "/") return divide(left, right, x / y);
  if (isFloat) return calculateFloat(operator, x, y);
  if (operator === "**") return power(left, right);
  const exact = calculateSmall(operator, x, y);
  if (Number.isSafeInteger(x) && Number.isSafeInteger(y) && Number.isSafeInteger(exact)) return exact;
  return toInt(calculateLarge(operator, BigInt(left), BigInt(right)));
}

function divide(left: Int | Float, right: Int | Float, quotient: number): Float {
  if (typeof left !== "bigint" && typeof right !== "bigint") return new Float(quotient);
  if (left instanceof Float || right instanceof Float) return new Float(quotient);
  // The quotient has at least 70 bits, the last of which stands for the rest, so that it is rounded
  // once.
  const [n, d] = [BigInt(left), BigInt(right)];
  const shift = Math.max(0, 70 - bitLength(n) + bitLength(d));
  const scaled = n << BigInt(shift);
  const rest = scaled % d === 0n ? 0n : 1n;
  return new Float(Number((scaled / d) | rest) / 2 ** shift);
}

function calculateSmall(operator: string, x: number, y: number): number {
  if (operator === "+") return x + y;
  if (operator === "-") return x - y;
  if (operator === "*") return x * y + 0;
  const floor = Math.floor(x / y) + 0;
  return operator === "//" ? floor : x - y * floor;
}

function calculateLarge(operator: string, x: bigint, y: bigint): bigint {
  if (operator === "+") return x + y;
  if (operator === "-") return x - y;
  if (operator === "*") {
    checkBits(bitLength(x) + bitLength(y));
    return x * y;
  }
  const remainder = ((x % y) + y) % y;
  return operator === "//" ? (x - remainder) / y : remainder;
}

function calculateFloat(operator: string, x: number, y: number): Float {
  if (operator === "+") return new Float(x + y);
  if (operator === "-") return new Float(x - y);
  if (operator === "*") return new Float(x * y);
  if (operator === "**") return powerFloat(x, y);
  // CPython's float_divmod.
  let remainder = x % y;
  let quotient = (x - remainder) / y;
  if (remainder !== 0 && y < 0 !== remainder < 0) {
    remainder += y;
    quotient -= 1;
  }
  if (remainder === 0) remainder = y < 0 ? -0 : 0;
  if (operator === "%") return new Float(remainder);
  const floor = Math.floor(quotient);
  if (quotient === 0) return new Float(x / y < 0 ? -0 : 0);
  return new Float(quotient - floor > 0.5 ? floor + 1 : floor);
}

function power(base: Int, exponent: Int): Value {
  if (exponent < 0) return powerFloat(Number(base), Number(exponent));
  const size = Math.abs(Number(base));
  if (size > 1) checkBits(Math.log2(size) * Number(exponent));
  return toInt(BigInt(base) ** BigInt(exponent));
}

function powerFloat(base: number, exponent: number): Float {
  if (base === 0 && exponent < 0) throw new Error("0.0 cannot be raised to a negative power");
  if (base < 0 && Number.isFinite(exponent) && !Number.isInteger(exponent))
    throw new Error("complex numbers are not supported");
  // Python's 1 ** nan is 1.
  const result = base === 1 ? 1 : base ** exponent;
  if (Number.isFinite(base) && Number.isFinite(exponent) && !Number.isFinite(result))
    throw new Error("Numerical result out of range");
  return new Float(result);
}

function checkBits(bits: number): void {
  if (bits > MAX_INTEGER_BITS) throw limitError(MAX_INTEGER_BITS, "bits of one integer");
}

/** Returns the number of bits of an integer without its sign. */
export function bitLength(value: Int): number {
  const integer = BigInt(value);
  return integer === 0n ? 0 : (integer < 0n ? -integer : integer).toString(2).length;
}

/** Replaces the decimal digits of all scripts with ASCII's. */
export function toAsciiDigits(text: string): string {
  return text.replace(/\P{ASCII}/gu, (character) => {
    const code = character.codePointAt(0) ?? 0;
    let start = code;
    while (isDecimal(start - 1)) start--;
    // Digits are in runs from zero to nine.
    return isDecimal(code) ? String((code - start) % 10) : character;
  });
}

const isDecimal = (code: number) => /\p{Nd}/u.test(String.fromCodePoint(code));

/** Parses an integer as Python's int(text, base); undefined for anything else. */
export function parseInteger(text: string, base: number): Int | undefined {
  if (base !== 0 && (base < 2 || base > 36)) throw new Error("int() base must be >= 2 and <= 36, or 0");
  const match = /^([+-]?)(0[box])?(_?[0-9a-z]+(?:_[0-9a-z]+)*)$/i.exec(text);
  if (!match) return undefined;
  const [, sign, prefix = "", body] = match;
  const prefixBase = { "0b": 2, "0o": 8, "0x": 16 }[prefix.toLowerCase()];
  if (prefixBase !== undefined && (base === 0 || base === prefixBase)) return parseDigits(sign, body, prefixBase);
  if (body.startsWith("_") || (base === 0 && /^0[0_]*[1-9]/.test(body))) return undefined;
  return parseDigits(sign, prefix + body, base || 10);
}

function parseDigits(sign: string, text: string, base: number): Int | undefined {
  let value = 0n;
  for (const digit of text.replaceAll("_", "").toLowerCase()) {
    const number = Number.parseInt(digit, 36);
    if (Number.isNaN(number) || number >= base) return undefined;
    value = value * BigInt(base) + BigInt(number);
  }
  return toInt(sign === "-" ? -value : value);
}

/** Parses a float as Python's float(text); undefined for anything else. */
export function parseFloatText(text: string): number | undefined {
  const special = /^([+-]?)(inf|infinity|nan)$/i.exec(text);
  if (special) return special[2].toLowerCase() === "nan" ? Number.NaN : special[1] === "-" ? -Infinity : Infinity;
  const digits = String.raw`\d+(?:_\d+)*`;
  const pattern = new RegExp(`^[+-]?(?:${digits}\\.?(?:${digits})?|\\.${digits})(?:e[+-]?${digits})?$`, "i");
  return pattern.test(text) ? Number(text.replaceAll("_", "")) : undefined;
}

/** Truncates a float as Python's int(). @throws for infinity. */
export function truncateFloat(number: number): Int {
  if (!Number.isFinite(number))
    throw new Error(`cannot convert float ${Number.isNaN(number) ? "NaN" : "infinity"} to integer`);
  return toInt(BigInt(Math.trunc(number)));
}
