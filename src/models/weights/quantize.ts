import { LlamaGymError } from "../../core/errors.js";
import { ZERO_CODE, type CodeType } from "../../engine/graph/index.js";

/** Weights per scale. */
export const BLOCK_SIZE = 32;

export interface QuantizedTensor {
  /** One code per byte, or two at 4 bits, the first in the low half. */
  readonly codes: Uint8Array;
  /** One per block. */
  readonly scales: Float32Array;
}

/**
 * Rounds weights to 4 or 8 bits in blocks of 32: (code - middle) * scale with the middle code 8 or
 * 128. The weight of largest magnitude is exact, so that weights quantized as Q4_0 or Q8_0 are
 * reproduced.
 */
export function quantize(weights: Float32Array, bits: 4 | 8): QuantizedTensor {
  const blocks = weights.length / BLOCK_SIZE;
  if (!Number.isInteger(blocks))
    throw new LlamaGymError(
      "MODEL_UNSUPPORTED",
      `Quantization requires a multiple of ${BLOCK_SIZE} weights, got ${weights.length}.`,
    );
  const codes = new Uint8Array((weights.length * bits) / 8);
  const scales = new Float32Array(blocks);
  const zeroCode = bits === 4 ? 8 : 128;
  const maxCode = 2 * zeroCode - 1;
  for (let block = 0; block < blocks; block++) {
    const start = block * BLOCK_SIZE;
    const end = start + BLOCK_SIZE;
    let [extreme, magnitude] = [0, 0];
    for (let i = start; i < end; i++) {
      const size = Math.abs(weights[i]);
      if (size > magnitude) {
        magnitude = size;
        extreme = weights[i];
      }
    }
    // At 4 bits the lowest code, -8, has the larger magnitude, so the extreme weight takes it.
    const scale = bits === 4 ? extreme / -8 : magnitude / 127;
    scales[block] = scale;
    const inverse = scale === 0 ? 0 : 1 / Math.fround(scale);
    // Rounds as Math.round does; a code is beyond the range only by rounding of the scale.
    const round = (weight: number): number => Math.floor(weight * inverse + 0.5) + zeroCode;
    if (bits === 8) for (let i = start; i < end; i++) codes[i] = clamp(round(weights[i]), maxCode);
    else
      for (let i = start; i < end; i += 2)
        codes[i >> 1] = clamp(round(weights[i]), maxCode) | (clamp(round(weights[i + 1]), maxCode) << 4);
  }
  return { codes, scales };
}

const clamp = (code: number, max: number): number => (code < 0 ? 0 : code > max ? max : code);

/** int8 codes -127 to 127 and the scales of their rows. */
export interface Int8Codes {
  readonly codes: Int8Array;
  readonly scales: Float32Array;
}

/** Rounds a matrix [rows, columns], with a scale per row. */
export function roundRows(weights: Float32Array, columns: number): Int8Codes {
  const codes = new Int8Array(weights.length);
  const scales = new Float32Array(weights.length / columns);
  for (let row = 0, start = 0; start < weights.length; row++, start += columns) {
    let largest = 0;
    for (let i = start; i < start + columns; i++) {
      const magnitude = Math.abs(weights[i]);
      if (magnitude > largest) largest = magnitude;
    }
    scales[row] = largest / 127;
    const inverse = largest === 0 ? 0 : 127 / largest;
    for (let i = start; i < start + columns; i++) codes[i] = Math.floor(weights[i] * inverse + 0.5);
  }
  return { codes, scales };
}

/** Allocates codes of a type. */
export const createCodes = (type: CodeType, count: number): Int8Array | Uint8Array =>
  type === "int8" ? new Int8Array(count) : new Uint8Array(count);

/** Rows that are transposed at a time, as many as stay in the processor's cache. */
const TRANSPOSED_ROWS = 64;

interface TransposedCodes {
  /** [columns, rows]; of unsigned codes, 128 is 0. */
  readonly codes: Int8Array | Uint8Array;
  readonly rows: number;
  readonly columns: number;
  /** First of the given rows. */
  readonly row: number;
}

/** Writes some rows of a matrix [rows, columns] into its transpose. */
export function transposeCodes(given: Int8Array, { codes, rows, columns, row: firstRow }: TransposedCodes): void {
  const count = given.length / columns;
  const zero = codes instanceof Uint8Array ? ZERO_CODE : 0;
  for (let first = 0; first < count; first += TRANSPOSED_ROWS) {
    const end = Math.min(count, first + TRANSPOSED_ROWS);
    for (let column = 0; column < columns; column++) {
      const target = column * rows + firstRow;
      for (let row = first; row < end; row++) codes[target + row] = given[row * columns + column] + zero;
    }
  }
}
