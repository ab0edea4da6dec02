/** Fraction bits of the fixed-point numbers: enough for two doubles. */
const BITS = 160n;
const ONE = 1n << BITS;
/** Table size: sin and cos of 0/128 to 127/128, with a margin above 0.86. */
const ENTRIES = 128;

const multiply = (a: bigint, b: bigint) => (a * b) >> BITS;

/** Computes sin(k/128) and cos(k/128) by their series, in fixed point. */
function computeSeries(k: number): { sine: bigint; cosine: bigint } {
  const x = (BigInt(k) << BITS) / 128n;
  const square = multiply(x, x);
  const sum = (first: bigint, order: bigint) => {
    let total = 0n;
    let term = first;
    for (let n = order; term !== 0n; n += 2n) {
      total += term;
      term = -multiply(term, square) / ((n + 1n) * (n + 2n));
    }
    return total;
  };
  return { sine: sum(x, 1n), cosine: sum(ONE, 0n) };
}

/** Returns the double nearest to a fixed-point number. */
function toNearestDouble(value: bigint): number {
  // Number() rounds a bigint to nearest; dividing by a power of two is exact.
  return Number(value) / 2 ** Number(BITS);
}

function toFixedPoint(value: number): bigint {
  // A table value is above 2^-8, so its last bit is above 2^-61.
  return BigInt(value * 2 ** 100) << (BITS - 100n);
}

function splitDoubles(values: readonly bigint[]): { high: Float64Array; low: Float64Array } {
  const high = Float64Array.from(values, toNearestDouble);
  const low = Float64Array.from(values, (value, k) => toNearestDouble(value - toFixedPoint(high[k])));
  return { high, low };
}

const entries = Array.from({ length: ENTRIES }, (_, k) => computeSeries(k));
const sines = splitDoubles(entries.map(({ sine }) => sine));
const cosines = splitDoubles(entries.map(({ cosine }) => cosine));

/** sin(k/128) = sineHigh[k] + sineLow[k], likewise for the cosine. */
export const sineHigh = sines.high;
export const sineLow = sines.low;
export const cosineHigh = cosines.high;
export const cosineLow = cosines.low;
