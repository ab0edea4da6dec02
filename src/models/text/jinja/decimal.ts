/** Exact decimal digits of floats, rounded half to even as in Python. */

/** A finite float as numerator / 2^shift. */
function toFraction(value: number): { numerator: bigint; shift: bigint } {
  let mantissa = Math.abs(value);
  let shift = 0;
  while (!Number.isInteger(mantissa)) {
    mantissa *= 2;
    shift++;
  }
  return { numerator: BigInt(mantissa), shift: BigInt(shift) };
}

function divideHalfEven(numerator: bigint, denominator: bigint): bigint {
  const quotient = numerator / denominator;
  const twice = (numerator - quotient * denominator) * 2n;
  const isUp = twice > denominator || (twice === denominator && quotient % 2n === 1n);
  return isUp ? quotient + 1n : quotient;
}

/** Returns |value| * 10^digits as an integer, rounded half to even. */
function scaleDecimal(value: number, digits: number): bigint {
  const { numerator, shift } = toFraction(value);
  const scale = 10n ** BigInt(Math.abs(digits));
  return digits >= 0
    ? divideHalfEven(numerator * scale, 1n << shift)
    : divideHalfEven(numerator, (1n << shift) * scale);
}

/** Formats |value| with a fixed number of decimal places. */
export function toFixedDigits(value: number, places: number): string {
  const digits = scaleDecimal(value, places)
    .toString()
    .padStart(places + 1, "0");
  return places === 0 ? digits : `${digits.slice(0, -places)}.${digits.slice(-places)}`;
}

/**
 * Returns the first `count` significant digits of |value| and the decimal exponent of the first
 * one.
 */
export function toSignificantDigits(value: number, count: number): { digits: string; exponent: number } {
  if (value === 0) return { digits: "0".repeat(count), exponent: 0 };
  let exponent = Number(Math.abs(value).toExponential().split("e")[1]);
  let digits = scaleDecimal(value, count - 1 - exponent).toString();
  if (digits.length > count) {
    exponent++;
    digits = scaleDecimal(value, count - 1 - exponent).toString();
  }
  return { digits, exponent };
}

/** Python's round(value, places) for floats. */
export function roundFloat(value: number, places: number): number {
  if (!Number.isFinite(value) || places > 330) return value;
  if (places < -330) return 0 * value;
  const scaled = scaleDecimal(value, places);
  const magnitude = Number(places >= 0 ? `${scaled}e${-places}` : (scaled * 10n ** BigInt(-places)).toString());
  return value < 0 || Object.is(value, -0) ? -magnitude : magnitude;
}

/** Python's round(value, places) for integers. */
export function roundInteger(value: bigint, places: number): bigint {
  if (places >= 0) return value;
  const scale = 10n ** BigInt(Math.min(-places, 10_000));
  const rounded = divideHalfEven(value < 0n ? -value : value, scale) * scale;
  return value < 0n ? -rounded : rounded;
}
