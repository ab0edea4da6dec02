import { LlamaGymError } from "../../core/errors.js";

/** Weights per scale. */
export const BLOCK_SIZE = 32;

export interface QuantizedTensor {
  /** One code per byte, or two at 4 bits, the first in the low half. */
  readonly codes: Uint8Array;
  /** One per block. */
  readonly scales: Float32Array;
}

/**
 * Rounds weights to 4 or 8 bits in blocks of 32: (code - middle) * scale with the middle code 8 or 128. The weight of
 * largest magnitude is exact, so that weights quantized as Q4_0 or Q8_0 are reproduced.
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
  for (let block = 0; block < blocks; block++) {
    const start = block * BLOCK_SIZE;
    let extreme = 0;
    for (let i = start; i < start + BLOCK_SIZE; i++) if (Math.abs(weights[i]) > Math.abs(extreme)) extreme = weights[i];
    // At 4 bits the lowest code, -8, has the larger magnitude, so the extreme weight takes it.
    const scale = bits === 4 ? extreme / -8 : Math.abs(extreme) / 127;
    scales[block] = scale;
    const inverse = scale === 0 ? 0 : 1 / Math.fround(scale);
    for (let i = start; i < start + BLOCK_SIZE; i++) {
      const code = Math.min(2 * zeroCode - 1, Math.max(0, Math.round(weights[i] * inverse) + zeroCode));
      if (bits === 8) codes[i] = code;
      else codes[i >> 1] |= i % 2 === 0 ? code : code << 4;
    }
  }
  return { codes, scales };
}

/** int8 codes -127 to 127 and the scales of their rows or columns. */
export interface Int8Codes {
  readonly codes: Int8Array;
  readonly scales: Float32Array;
}

/** Rounds a matrix [rows, columns] in place, with a scale per row. */
export function roundRows(weights: Float32Array, columns: number): Int8Codes {
  const codes = new Int8Array(weights.length);
  const scales = new Float32Array(weights.length / columns);
  for (let row = 0, start = 0; start < weights.length; row++, start += columns) {
    let largest = 0;
    for (let i = start; i < start + columns; i++) largest = Math.max(largest, Math.abs(weights[i]));
    scales[row] = largest / 127;
    const inverse = largest === 0 ? 0 : 127 / largest;
    for (let i = start; i < start + columns; i++) {
      codes[i] = Math.round(weights[i] * inverse);
      weights[i] = codes[i] * scales[row];
    }
  }
  return { codes, scales };
}

/** Rounds a matrix [rows, columns] to codes, with a scale per column. */
export function quantizeColumns(weights: Float32Array, columns: number): Int8Codes {
  const scales = new Float32Array(columns);
  for (let i = 0, column = 0; i < weights.length; i++, column = column + 1 === columns ? 0 : column + 1) {
    const magnitude = Math.abs(weights[i]);
    if (magnitude > scales[column]) scales[column] = magnitude;
  }
  const inverses = scales.map((largest) => (largest === 0 ? 0 : 127 / largest));
  const codes = new Int8Array(weights.length);
  for (let i = 0, column = 0; i < weights.length; i++, column = column + 1 === columns ? 0 : column + 1)
    codes[i] = Math.round(weights[i] * inverses[column]);
  return { codes, scales: scales.map((largest) => largest / 127) };
}
