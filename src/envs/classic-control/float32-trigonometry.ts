/**
 * Sine and cosine of float32 numbers, equal to NumPy's for that type: reduction by pi/2 in three
 * pieces (Cody and Waite), then a polynomial, every step a float32 multiply-add. They can be one
 * unit in the last place off.
 */
const TWO_OVER_PI = 0.6366197466850281;
const HALF_PI_1 = -1.570796012878418;
const HALF_PI_2 = -3.1391647326017846e-7;
const HALF_PI_3 = -5.390302529957765e-15;
/** Coefficients of x^9, x^7, x^5, x^3 and of x^8, x^6, x^4, x^2, 1. */
const SINE = [2.8404097065504175e-6, -0.00019856491417158395, 0.008333397097885609, -0.1666666716337204];
const COSINE = [2.4372266125283204e-5, -0.001388652017340064, 0.04166661947965622, -0.5, 1];
/** 1.5 * 2^23: adding it rounds a float32 to an integer. */
const ROUND_TO_INTEGER = 12582912;

/** Computes a * b + c in float32; the product of two float32 numbers is exact in double. */
const multiplyAdd = (a: number, b: number, c: number) => Math.fround(a * b + c);

function evaluatePolynomial(coefficients: readonly number[], x: number): number {
  return coefficients.reduce((sum, coefficient) => multiplyAdd(sum, x, coefficient));
}

function computeSine(x: number, quadrants: number): number {
  const quarterTurns = Math.fround(Math.fround(Math.fround(x * TWO_OVER_PI) + ROUND_TO_INTEGER) - ROUND_TO_INTEGER);
  const reduced = multiplyAdd(
    quarterTurns,
    HALF_PI_3,
    multiplyAdd(quarterTurns, HALF_PI_2, multiplyAdd(quarterTurns, HALF_PI_1, x)),
  );
  const square = Math.fround(reduced * reduced);
  const quadrant = (quarterTurns + quadrants) & 3;
  const sine = () => multiplyAdd(Math.fround(evaluatePolynomial(SINE, square) * square), reduced, reduced);
  const value = (quadrant & 1) === 1 ? evaluatePolynomial(COSINE, square) : sine();
  return quadrant >= 2 ? -value : value;
}

/** Returns the float32 sine of a float32 angle in radians. */
export const sinFloat32 = (x: number) => computeSine(x, 0);

/** Returns the float32 cosine of a float32 angle in radians. */
export const cosFloat32 = (x: number) => computeSine(x, 1);
