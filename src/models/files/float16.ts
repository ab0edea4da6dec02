/**
 * Conversions between float32 and 16-bit floats as bit patterns (Uint16Array): bfloat16 is the
 * upper half of a float32; IEEE binary16 uses a table of all 65,536 patterns.
 */

let halfTable: Uint32Array | undefined;

/** Returns the float32 bits of an IEEE binary16 pattern. */
function halfToFloatBits(half: number): number {
  const sign = (half & 0x8000) << 16;
  const exponent = (half >>> 10) & 0x1f;
  const fraction = half & 0x3ff;
  if (exponent === 0x1f) return (sign | 0x7f800000 | (fraction << 13)) >>> 0;
  if (exponent !== 0) return (sign | ((exponent + 112) << 23) | (fraction << 13)) >>> 0;
  if (fraction === 0) return sign >>> 0;
  // A subnormal half is a normal float: shift its leading one to the implicit position.
  const shift = Math.clz32(fraction) - 21;
  return (sign | ((113 - shift) << 23) | ((fraction << (shift + 13)) & 0x7fffff)) >>> 0;
}

/** Returns the float32 bits of every binary16 pattern. */
function getHalfToFloatBitsTable(): Uint32Array {
  if (halfTable === undefined) {
    halfTable = new Uint32Array(65_536);
    for (let half = 0; half < 65_536; half++) halfTable[half] = halfToFloatBits(half);
  }
  return halfTable;
}

/** Returns the float32 value of every binary16 pattern. */
export function getHalfToFloatTable(): Float32Array {
  return new Float32Array(getHalfToFloatBitsTable().buffer);
}

function viewBits(values: Float32Array): Uint32Array {
  return new Uint32Array(values.buffer, values.byteOffset, values.length);
}

/** Converts binary16 patterns to float32 exactly. */
export function float16ToFloat32(source: Uint16Array, target: Float32Array): void {
  const table = getHalfToFloatBitsTable();
  const bits = viewBits(target);
  for (let i = 0; i < source.length; i++) bits[i] = table[source[i]];
}

/** Converts bfloat16 patterns to float32 exactly. */
export function bfloat16ToFloat32(source: Uint16Array, target: Float32Array): void {
  const bits = viewBits(target);
  for (let i = 0; i < source.length; i++) bits[i] = source[i] << 16;
}

/** Rounds float32 to bfloat16 patterns, to nearest, ties to even; NaN stays NaN. */
export function float32ToBfloat16(source: Float32Array, target: Uint16Array): void {
  const bits = viewBits(source);
  for (let i = 0; i < source.length; i++) {
    const value = bits[i];
    if ((value & 0x7fffffff) > 0x7f800000) target[i] = (value >>> 16) | 0x40;
    else target[i] = (value + 0x7fff + ((value >>> 16) & 1)) >>> 16;
  }
}

/**
 * Rounds float32 to binary16 patterns, to nearest, ties to even; overflow becomes infinity, NaN
 * stays NaN.
 */
export function float32ToFloat16(source: Float32Array, target: Uint16Array): void {
  const bits = viewBits(source);
  for (let i = 0; i < source.length; i++) target[i] = floatBitsToHalf(bits[i]);
}

function floatBitsToHalf(bits: number): number {
  const sign = (bits >>> 16) & 0x8000;
  const magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7e00 | ((magnitude >>> 13) & 0x1ff);
  // 65,520 and above round to infinity.
  if (magnitude >= 0x477ff000) return sign | 0x7c00;
  if (magnitude >= 0x38800000) {
    const rebased = magnitude - 0x38000000;
    return sign | ((rebased + 0xfff + ((rebased >>> 13) & 1)) >>> 13);
  }
  // Below 2^-14 the result is subnormal: count in units of 2^-24.
  const exponent = magnitude >>> 23;
  const shift = 126 - exponent;
  if (shift > 24) return sign;
  const fraction = (magnitude & 0x7fffff) | 0x800000;
  const half = fraction >>> shift;
  const rest = fraction & ((1 << shift) - 1);
  const middle = 1 << (shift - 1);
  return sign | (half + (rest > middle || (rest === middle && (half & 1) === 1) ? 1 : 0));
}
