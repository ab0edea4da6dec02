import { getHalfToFloatTable } from "../../float16.js";

/**
 * Converts whole blocks to float32, exactly as ggml's reference code: products have at most 24
 * significant bits, so only the stored sum is rounded.
 */
export type DequantizeFunction = (bytes: Uint8Array, target: Float32Array) => void;

/** d q with signed 8-bit q. */
export const dequantizeQ8_0: DequantizeFunction = (bytes, target) => {
  const half = getHalfToFloatTable();
  for (let block = 0, out = 0; block < bytes.length; block += 34, out += 32) {
    const d = half[bytes[block] | (bytes[block + 1] << 8)];
    for (let i = 0; i < 32; i++) target[out + i] = d * ((bytes[block + 2 + i] << 24) >> 24);
  }
};

/** d (q - 8); low nibbles of the 16 bytes are the first 16 values, high nibbles the rest. */
export const dequantizeQ4_0: DequantizeFunction = (bytes, target) => {
  const half = getHalfToFloatTable();
  for (let block = 0, out = 0; block < bytes.length; block += 18, out += 32) {
    const d = half[bytes[block] | (bytes[block + 1] << 8)];
    for (let i = 0; i < 16; i++) {
      const pair = bytes[block + 2 + i];
      target[out + i] = d * ((pair & 15) - 8);
      target[out + 16 + i] = d * ((pair >> 4) - 8);
    }
  }
};

/** d q + m. */
export const dequantizeQ4_1: DequantizeFunction = (bytes, target) => {
  const half = getHalfToFloatTable();
  for (let block = 0, out = 0; block < bytes.length; block += 20, out += 32) {
    const d = half[bytes[block] | (bytes[block + 1] << 8)];
    const m = half[bytes[block + 2] | (bytes[block + 3] << 8)];
    for (let i = 0; i < 16; i++) {
      const pair = bytes[block + 4 + i];
      target[out + i] = d * (pair & 15) + m;
      target[out + 16 + i] = d * (pair >> 4) + m;
    }
  }
};

function readUint32(bytes: Uint8Array, offset: number): number {
  return bytes[offset] | (bytes[offset + 1] << 8) | (bytes[offset + 2] << 16) | (bytes[offset + 3] << 24);
}

/** d (q - 16), with the fifth bits of the 32 values in a separate word. */
export const dequantizeQ5_0: DequantizeFunction = (bytes, target) => {
  const half = getHalfToFloatTable();
  for (let block = 0, out = 0; block < bytes.length; block += 22, out += 32) {
    const d = half[bytes[block] | (bytes[block + 1] << 8)];
    const fifth = readUint32(bytes, block + 2);
    for (let i = 0; i < 16; i++) {
      const pair = bytes[block + 6 + i];
      target[out + i] = d * (((pair & 15) | (((fifth >>> i) & 1) << 4)) - 16);
      target[out + 16 + i] = d * (((pair >> 4) | (((fifth >>> (i + 16)) & 1) << 4)) - 16);
    }
  }
};

/** d q + m, with the fifth bits of the 32 values in a separate word. */
export const dequantizeQ5_1: DequantizeFunction = (bytes, target) => {
  const half = getHalfToFloatTable();
  for (let block = 0, out = 0; block < bytes.length; block += 24, out += 32) {
    const d = half[bytes[block] | (bytes[block + 1] << 8)];
    const m = half[bytes[block + 2] | (bytes[block + 3] << 8)];
    const fifth = readUint32(bytes, block + 4);
    for (let i = 0; i < 16; i++) {
      const pair = bytes[block + 8 + i];
      target[out + i] = d * ((pair & 15) | (((fifth >>> i) & 1) << 4)) + m;
      target[out + 16 + i] = d * ((pair >> 4) | (((fifth >>> (i + 16)) & 1) << 4)) + m;
    }
  }
};

/** Levels of the non-linear 4-bit formats. */
const nonLinearLevels = Int8Array.of(-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113);

/** d times one of sixteen levels. */
export const dequantizeIQ4_NL: DequantizeFunction = (bytes, target) => {
  const half = getHalfToFloatTable();
  for (let block = 0, out = 0; block < bytes.length; block += 18, out += 32) {
    const d = half[bytes[block] | (bytes[block + 1] << 8)];
    for (let i = 0; i < 16; i++) {
      const pair = bytes[block + 2 + i];
      target[out + i] = d * nonLinearLevels[pair & 15];
      target[out + 16 + i] = d * nonLinearLevels[pair >> 4];
    }
  }
};

/** d (s - 32) times a level, in eight groups of 32 with 6-bit scales s. */
export const dequantizeIQ4_XS: DequantizeFunction = (bytes, target) => {
  const half = getHalfToFloatTable();
  for (let block = 0, out = 0; block < bytes.length; block += 136) {
    const d = half[bytes[block] | (bytes[block + 1] << 8)];
    const highBits = bytes[block + 2] | (bytes[block + 3] << 8);
    for (let group = 0; group < 8; group++, out += 32) {
      const low = (bytes[block + 4 + (group >> 1)] >> (4 * (group & 1))) & 15;
      const scale = d * ((low | (((highBits >> (2 * group)) & 3) << 4)) - 32);
      const quants = block + 8 + 16 * group;
      for (let i = 0; i < 16; i++) {
        const pair = bytes[quants + i];
        target[out + i] = scale * nonLinearLevels[pair & 15];
        target[out + 16 + i] = scale * nonLinearLevels[pair >> 4];
      }
    }
  }
};
