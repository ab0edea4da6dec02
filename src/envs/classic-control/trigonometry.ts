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
const sineHigh = sines.high;
const sineLow = sines.low;
const cosineHigh = cosines.high;
const cosineLow = cosines.low;

/**
 * Sine and cosine, bit for bit equal to those of the GNU C library on a processor with fused
 * multiply-add, which computed Gymnasium's recorded episodes. `Math.sin` is accurate to one unit in
 * the last place but differs for 3% of arguments, and chaotic systems amplify the difference.
 *
 * The method is the library's: up to 0.126 a Taylor polynomial, above it sin(k/128 + x) from a
 * table of sin(k/128) and cos(k/128) to 106 bits, arguments reduced by pi/2 to 160 bits. Its errors
 * stay below 0.55 units in the last place. Arguments must be below 10^8.
 */

const SPLITTER = 134217729;

/** Computes a * b + c with one rounding (Dekker 1971), for numbers far from overflow. */
function fma(a: number, b: number, c: number): number {
  const product = a * b;
  const aSplit = SPLITTER * a;
  const aHigh = aSplit - (aSplit - a);
  const aLow = a - aHigh;
  const bSplit = SPLITTER * b;
  const bHigh = bSplit - (bSplit - b);
  const bLow = b - bHigh;
  const productError = aHigh * bHigh - product + aHigh * bLow + aLow * bHigh + aLow * bLow;
  const sum = product + c;
  const added = sum - product;
  const sumError = product - (sum - added) + (c - added);
  return sum + (sumError + productError);
}

/** Taylor coefficients of sine, fitted for |x| < 0.126: x^3, x^5, ... x^11. */
const S3 = -0.16666666666666666;
const S5 = 0.008333333333332329;
const S7 = -0.00019841269834414642;
const S9 = 2.755729806860771e-6;
const S11 = -2.5022014848318398e-8;
/** The same for |x| <= 1/256 around a table entry. */
const NEAR_S3 = -0.16666666666666488;
const NEAR_S5 = 0.008333332142857223;
const NEAR_C2 = 0.5;
const NEAR_C4 = -0.04166666666666644;
const NEAR_C6 = 0.001388888740079376;
/** 1.5 * 2^45: adding it rounds to multiples of 1/128. */
const ROUND_TO_128TH = 52776558133248;
/** 1.5 * 2^52: adding it rounds to integers. */
const ROUND_TO_INTEGER = 6755399441055744;
const TWO_OVER_PI = 0.6366197723675814;
/** pi/2 in pieces: the first two for small arguments, the others for the reduction. */
const HALF_PI_HIGH = 1.5707963267948966;
const HALF_PI_LOW = 6.123233995736766e-17;
const HALF_PI_1 = 1.5707963407039642;
const HALF_PI_2 = -1.3909067564377153e-8;
const HALF_PI_3 = -4.97899623147991e-17;
const HALF_PI_4 = -1.9034889620193266e-25;
const TAYLOR_LIMIT = 0.126;
const FIRST_LIMIT = 0.85546875;
const SECOND_LIMIT = 2.4262638092041016;

/** sin(x + dx) for |x| below about 0.86. */
function computeSmallSine(x: number, dx: number): number {
  if (Math.abs(x) < TAYLOR_LIMIT) {
    const square = x * x;
    const series = fma(fma(fma(fma(S11, square, S9), square, S7), square, S5), square, S3);
    return x + fma(fma(series, x, -0.5 * dx), square, dx);
  }
  const correction = x <= 0 ? -dx : dx;
  const shifted = ROUND_TO_128TH + Math.abs(x);
  const nearest = shifted - ROUND_TO_128TH;
  const k = nearest * 128;
  const rest = Math.abs(x) - nearest;
  const square = rest * rest;
  const sine = rest + fma(rest * square, fma(square, NEAR_S5, NEAR_S3), correction);
  const versine = fma(rest, correction, square * fma(square, fma(square, NEAR_C6, NEAR_C4), NEAR_C2));
  const low = fma(cosineHigh[k], sine, fma(-sineHigh[k], versine, fma(sine, cosineLow[k], sineLow[k])));
  const result = sineHigh[k] + low;
  return x < 0 ? -result : result;
}

/** cos(x + dx) for |x| below about 0.86. */
function computeSmallCosine(x: number, dx: number): number {
  const shifted = ROUND_TO_128TH + Math.abs(x);
  const nearest = shifted - ROUND_TO_128TH;
  const k = nearest * 128;
  const rest = Math.abs(x) - nearest + (x < 0 ? -dx : dx);
  const square = rest * rest;
  const sine = fma(rest * square, fma(square, NEAR_S5, NEAR_S3), rest);
  const versine = square * fma(square, fma(square, NEAR_C6, NEAR_C4), NEAR_C2);
  const low = fma(-sineHigh[k], sine, fma(-cosineHigh[k], versine, fma(-sine, sineLow[k], cosineLow[k])));
  return cosineHigh[k] + low;
}

/** sin(x + quadrants * pi/2) for any x, by reduction to [-pi/4, pi/4]. */
function computeReducedSine(x: number, quadrants: number): number {
  const quarterTurns = fma(x, TWO_OVER_PI, ROUND_TO_INTEGER) - ROUND_TO_INTEGER;
  const first = fma(-quarterTurns, HALF_PI_2, fma(-quarterTurns, HALF_PI_1, x));
  const second = fma(-quarterTurns, HALF_PI_3, first);
  const secondError = fma(-quarterTurns, HALF_PI_3, first - second);
  const reduced = fma(-quarterTurns, HALF_PI_4, second);
  const error = secondError + fma(-quarterTurns, HALF_PI_4, second - reduced);
  const quadrant = (quarterTurns + quadrants) & 3;
  const value = (quadrant & 1) === 1 ? computeSmallCosine(reduced, error) : computeSmallSine(reduced, error);
  return quadrant >= 2 ? -value : value;
}

/** Returns the sine of an angle in radians. */
export function sin(x: number): number {
  const magnitude = Math.abs(x);
  if (magnitude < 2 ** -26) return x;
  if (magnitude < FIRST_LIMIT) return computeSmallSine(x, 0);
  if (magnitude < SECOND_LIMIT) return Math.sign(x) * computeSmallCosine(HALF_PI_HIGH - magnitude, HALF_PI_LOW);
  return computeReducedSine(x, 0);
}

/** Returns the cosine of an angle in radians. */
export function cos(x: number): number {
  const magnitude = Math.abs(x);
  if (magnitude < 2 ** -27) return 1;
  if (magnitude < FIRST_LIMIT) return computeSmallCosine(x, 0);
  if (magnitude < SECOND_LIMIT) {
    const complement = HALF_PI_HIGH - magnitude;
    const high = complement + HALF_PI_LOW;
    return computeSmallSine(high, complement - high + HALF_PI_LOW);
  }
  return computeReducedSine(x, 1);
}
