import { getHalfToFloatTable } from "../../float16.js";
import type { DequantizeFunction } from "./dequantize-blocks.js";

/**
 * GGML's K formats: blocks of 256 values in groups of 16 or 32, each with a small scale (and
 * minimum), and one half-precision scale per block. Only the final sum is rounded.
 */

const BLOCK = 256;

/** Returns the 6-bit scale of a group of Q4_K and Q5_K, whose 12 bytes of scales begin at `offset`. */
function readGroupScale(bytes: Uint8Array, offset: number, group: number): number {
  if (group < 4) return bytes[offset + group] & 63;
  return (bytes[offset + group + 4] & 15) | ((bytes[offset + group - 4] >> 6) << 4);
}

/** Returns the 6-bit minimum of a group of Q4_K and Q5_K. */
function readGroupMinimum(bytes: Uint8Array, offset: number, group: number): number {
  if (group < 4) return bytes[offset + group + 4] & 63;
  return (bytes[offset + group + 4] >> 4) | ((bytes[offset + group] >> 6) << 4);
}

/** d s q - dmin m in groups of 32; 32 bytes hold two groups, one in their low and one in their high halves. */
export const dequantizeQ4_K: DequantizeFunction = (bytes, target) => {
  const half = getHalfToFloatTable();
  for (let block = 0, out = 0; block < bytes.length; block += 144) {
    const d = half[bytes[block] | (bytes[block + 1] << 8)];
    const dmin = half[bytes[block + 2] | (bytes[block + 3] << 8)];
    for (let group = 0; group < 8; group += 2, out += 64) {
      const lowScale = d * readGroupScale(bytes, block + 4, group);
      const lowMinimum = dmin * readGroupMinimum(bytes, block + 4, group);
      const highScale = d * readGroupScale(bytes, block + 4, group + 1);
      const highMinimum = dmin * readGroupMinimum(bytes, block + 4, group + 1);
      const quants = block + 16 + 16 * group;
      for (let i = 0; i < 32; i++) {
        const pair = bytes[quants + i];
        target[out + i] = lowScale * (pair & 15) - lowMinimum;
        target[out + 32 + i] = highScale * (pair >> 4) - highMinimum;
      }
    }
  }
};

/** As Q4_K, with the fifth bits of group g as bit g of 32 further bytes. */
export const dequantizeQ5_K: DequantizeFunction = (bytes, target) => {
  const half = getHalfToFloatTable();
  for (let block = 0, out = 0; block < bytes.length; block += 176) {
    const d = half[bytes[block] | (bytes[block + 1] << 8)];
    const dmin = half[bytes[block + 2] | (bytes[block + 3] << 8)];
    for (let group = 0; group < 8; group += 2, out += 64) {
      const lowScale = d * readGroupScale(bytes, block + 4, group);
      const lowMinimum = dmin * readGroupMinimum(bytes, block + 4, group);
      const highScale = d * readGroupScale(bytes, block + 4, group + 1);
      const highMinimum = dmin * readGroupMinimum(bytes, block + 4, group + 1);
      const quants = block + 48 + 16 * group;
      for (let i = 0; i < 32; i++) {
        const pair = bytes[quants + i];
        const fifth = bytes[block + 16 + i] >> group;
        target[out + i] = lowScale * ((pair & 15) | ((fifth & 1) << 4)) - lowMinimum;
        target[out + 32 + i] = highScale * ((pair >> 4) | ((fifth & 2) << 3)) - highMinimum;
      }
    }
  }
};

/** d s (q - 32) in groups of 16 with signed 8-bit scales; low four and high two bits of q are stored apart. */
export const dequantizeQ6_K: DequantizeFunction = (bytes, target) => {
  const half = getHalfToFloatTable();
  const scales = new Int8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let block = 0, out = 0; block < bytes.length; block += 210, out += BLOCK) {
    const d = half[bytes[block + 208] | (bytes[block + 209] << 8)];
    for (let side = 0; side < 2; side++) {
      const low = block + 64 * side;
      const high = block + 128 + 32 * side;
      const start = out + 128 * side;
      for (let i = 0; i < 32; i++) {
        const scale = block + 192 + 8 * side + (i >> 4);
        const first = bytes[low + i];
        const second = bytes[low + 32 + i];
        const highBits = bytes[high + i];
        target[start + i] = d * scales[scale] * (((first & 15) | ((highBits & 3) << 4)) - 32);
        target[start + 32 + i] = d * scales[scale + 2] * (((second & 15) | ((highBits & 12) << 2)) - 32);
        target[start + 64 + i] = d * scales[scale + 4] * (((first >> 4) | (highBits & 48)) - 32);
        target[start + 96 + i] = d * scales[scale + 6] * (((second >> 4) | ((highBits & 192) >> 2)) - 32);
      }
    }
  }
};

/** d s q - dmin m in groups of 16 with 4-bit scales and minima and 2-bit q. */
export const dequantizeQ2_K: DequantizeFunction = (bytes, target) => {
  const half = getHalfToFloatTable();
  for (let block = 0, out = 0; block < bytes.length; block += 84) {
    const d = half[bytes[block + 80] | (bytes[block + 81] << 8)];
    const dmin = half[bytes[block + 82] | (bytes[block + 83] << 8)];
    for (let group = 0; group < 16; group++, out += 16) {
      const scale = d * (bytes[block + group] & 15);
      const minimum = dmin * (bytes[block + group] >> 4);
      const quants = block + 16 + 32 * (group >> 3) + 16 * (group & 1);
      const shift = group & 6;
      for (let i = 0; i < 16; i++) target[out + i] = scale * ((bytes[quants + i] >> shift) & 3) - minimum;
    }
  }
};

/** Returns the 6-bit scale of a group of Q3_K, whose 12 bytes of scales begin at `offset`. */
function readQ3Scale(bytes: Uint8Array, offset: number, group: number): number {
  const low = (bytes[offset + (group & 7)] >> (4 * (group >> 3))) & 15;
  const high = (bytes[offset + 8 + (group & 3)] >> (2 * (group >> 2))) & 3;
  return (low | (high << 4)) - 32;
}

/** d s (q - 4 unless the mask's bit is set) in groups of 16 with 2-bit q and a mask of third bits. */
export const dequantizeQ3_K: DequantizeFunction = (bytes, target) => {
  const half = getHalfToFloatTable();
  for (let block = 0, out = 0; block < bytes.length; block += 110) {
    const d = half[bytes[block + 108] | (bytes[block + 109] << 8)];
    for (let group = 0; group < 16; group++, out += 16) {
      const scale = d * readQ3Scale(bytes, block + 96, group);
      const quants = block + 32 + 32 * (group >> 3) + 16 * (group & 1);
      const mask = block + 16 * (group & 1);
      const shift = group & 6;
      for (let i = 0; i < 16; i++) {
        const third = (bytes[mask + i] >> (group >> 1)) & 1;
        target[out + i] = scale * (((bytes[quants + i] >> shift) & 3) - (third === 1 ? 0 : 4));
      }
    }
  }
};
