import { LlamaGymError } from "../../../core/errors.js";
import { getHalfToFloatTable } from "../float16.js";
import { getWidenFunction } from "../safetensors/dtypes.js";
import { getGgmlType, getGgmlTypeCode } from "./ggml-types.js";

/**
 * Converts the block of `bytes` that begins at `block` to float32 at `out`, exactly as ggml's
 * reference code: products have at most 24 significant bits, so only the stored sum is rounded.
 * `half` reads the half-precision number at an offset.
 */
type BlockDecoder = (
  bytes: Uint8Array,
  block: number,
  target: Float32Array,
  out: number,
  half: (offset: number) => number,
) => void;

/** Levels of the non-linear 4-bit formats. */
const nonLinearLevels = Int8Array.of(-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113);

/**
 * Formulas have half-precision d and m, quantized q, and in the K formats (256 values) scales s and
 * minima m of groups.
 */
const blockDecoders: Readonly<Record<string, BlockDecoder>> = {
  /** d (q - 8); low nibbles of the 16 bytes are the first 16 values, high nibbles the rest. */
  Q4_0: (bytes, block, target, out, half) => {
    const d = half(block);
    for (let i = 0; i < 16; i++) {
      const pair = bytes[block + 2 + i];
      target[out + i] = d * ((pair & 15) - 8);
      target[out + 16 + i] = d * ((pair >> 4) - 8);
    }
  },
  /** d q + m. */
  Q4_1: (bytes, block, target, out, half) => {
    const [d, m] = [half(block), half(block + 2)];
    for (let i = 0; i < 16; i++) {
      const pair = bytes[block + 4 + i];
      target[out + i] = d * (pair & 15) + m;
      target[out + 16 + i] = d * (pair >> 4) + m;
    }
  },
  /** d (q - 16), with the fifth bits of the 32 values in a separate word. */
  Q5_0: (bytes, block, target, out, half) => {
    const [d, fifth] = [half(block), readUint32(bytes, block + 2)];
    for (let i = 0; i < 16; i++) {
      const pair = bytes[block + 6 + i];
      target[out + i] = d * (((pair & 15) | (((fifth >>> i) & 1) << 4)) - 16);
      target[out + 16 + i] = d * (((pair >> 4) | (((fifth >>> (i + 16)) & 1) << 4)) - 16);
    }
  },
  /** d q + m, with the fifth bits as in Q5_0. */
  Q5_1: (bytes, block, target, out, half) => {
    const [d, m, fifth] = [half(block), half(block + 2), readUint32(bytes, block + 4)];
    for (let i = 0; i < 16; i++) {
      const pair = bytes[block + 8 + i];
      target[out + i] = d * ((pair & 15) | (((fifth >>> i) & 1) << 4)) + m;
      target[out + 16 + i] = d * ((pair >> 4) | (((fifth >>> (i + 16)) & 1) << 4)) + m;
    }
  },
  /** d q with signed 8-bit q. */
  Q8_0: (bytes, block, target, out, half) => {
    const d = half(block);
    for (let i = 0; i < 32; i++) target[out + i] = d * ((bytes[block + 2 + i] << 24) >> 24);
  },
  /** d s q - dmin m in groups of 16 with 4-bit scales and minima and 2-bit q. */
  Q2_K: (bytes, block, target, out, half) => {
    const [d, dmin] = [half(block + 80), half(block + 82)];
    for (let group = 0; group < 16; group++) {
      const scale = d * (bytes[block + group] & 15);
      const minimum = dmin * (bytes[block + group] >> 4);
      const quants = block + 16 + 32 * (group >> 3) + 16 * (group & 1);
      for (let i = 0; i < 16; i++)
        target[out + 16 * group + i] = scale * ((bytes[quants + i] >> (group & 6)) & 3) - minimum;
    }
  },
  /**
   * d s (q - 4 unless the mask's bit is set) in groups of 16 with 2-bit q and a mask of third bits.
   */
  Q3_K: (bytes, block, target, out, half) => {
    const d = half(block + 108);
    for (let group = 0; group < 16; group++) {
      const low = (bytes[block + 96 + (group & 7)] >> (4 * (group >> 3))) & 15;
      const high = (bytes[block + 104 + (group & 3)] >> (2 * (group >> 2))) & 3;
      const scale = d * ((low | (high << 4)) - 32);
      const quants = block + 32 + 32 * (group >> 3) + 16 * (group & 1);
      for (let i = 0; i < 16; i++) {
        const third = (bytes[block + 16 * (group & 1) + i] >> (group >> 1)) & 1;
        target[out + 16 * group + i] = scale * (((bytes[quants + i] >> (group & 6)) & 3) - (third === 1 ? 0 : 4));
      }
    }
  },
  /**
   * d s q - dmin m in groups of 32; 32 bytes hold two groups, one in their low and one in their
   * high halves.
   */
  Q4_K: (bytes, block, target, out, half) => decodeGroups(bytes, block, target, out, half, 16, 0),
  /** As Q4_K, with the fifth bits of group g as bit g of 32 further bytes. */
  Q5_K: (bytes, block, target, out, half) => decodeGroups(bytes, block, target, out, half, 48, 3),
  /**
   * d s (q - 32) in groups of 16 with signed 8-bit scales; low four and high two bits of q are
   * stored apart.
   */
  Q6_K: (bytes, block, target, out, half) => {
    const d = half(block + 208);
    const scale = (index: number) => d * ((bytes[block + 192 + index] << 24) >> 24);
    for (let side = 0; side < 2; side++) {
      const [low, high, start] = [block + 64 * side, block + 128 + 32 * side, out + 128 * side];
      for (let i = 0; i < 32; i++) {
        const [first, second, highBits] = [bytes[low + i], bytes[low + 32 + i], bytes[high + i]];
        const group = 8 * side + (i >> 4);
        target[start + i] = scale(group) * (((first & 15) | ((highBits & 3) << 4)) - 32);
        target[start + 32 + i] = scale(group + 2) * (((second & 15) | ((highBits & 12) << 2)) - 32);
        target[start + 64 + i] = scale(group + 4) * (((first >> 4) | (highBits & 48)) - 32);
        target[start + 96 + i] = scale(group + 6) * (((second >> 4) | ((highBits & 192) >> 2)) - 32);
      }
    }
  },
  /** d times one of sixteen levels. */
  IQ4_NL: (bytes, block, target, out, half) => decodeLevels(bytes, block + 2, target, out, half(block)),
  /** d (s - 32) times a level, in eight groups of 32 with 6-bit scales s. */
  IQ4_XS: (bytes, block, target, out, half) => {
    const d = half(block);
    const highBits = bytes[block + 2] | (bytes[block + 3] << 8);
    for (let group = 0; group < 8; group++) {
      const low = (bytes[block + 4 + (group >> 1)] >> (4 * (group & 1))) & 15;
      const scale = d * ((low | (((highBits >> (2 * group)) & 3) << 4)) - 32);
      decodeLevels(bytes, block + 8 + 16 * group, target, out + 32 * group, scale);
    }
  },
};

/** Decodes 32 levels: the low nibbles of 16 bytes, then the high ones. */
function decodeLevels(bytes: Uint8Array, quants: number, target: Float32Array, out: number, scale: number): void {
  for (let i = 0; i < 16; i++) {
    const pair = bytes[quants + i];
    target[out + i] = scale * nonLinearLevels[pair & 15];
    target[out + 16 + i] = scale * nonLinearLevels[pair >> 4];
  }
}

/**
 * Returns the 6-bit scale of a group of Q4_K and Q5_K, whose 12 bytes of scales begin at `offset`.
 */
function readGroupScale(bytes: Uint8Array, offset: number, group: number): number {
  if (group < 4) return bytes[offset + group] & 63;
  return (bytes[offset + group + 4] & 15) | ((bytes[offset + group - 4] >> 6) << 4);
}

/** Returns the 6-bit minimum of a group of Q4_K and Q5_K. */
function readGroupMinimum(bytes: Uint8Array, offset: number, group: number): number {
  if (group < 4) return bytes[offset + group + 4] & 63;
  return (bytes[offset + group + 4] >> 4) | ((bytes[offset + group] >> 6) << 4);
}

/**
 * Decodes Q4_K and Q5_K, whose values begin at `quants`; `mask` is 3 with fifth bits, otherwise 0.
 */
function decodeGroups(
  bytes: Uint8Array,
  block: number,
  target: Float32Array,
  out: number,
  half: (offset: number) => number,
  quants: number,
  mask: 0 | 3,
): void {
  const [d, dmin] = [half(block), half(block + 2)];
  for (let group = 0; group < 8; group += 2) {
    const lowScale = d * readGroupScale(bytes, block + 4, group);
    const lowMinimum = dmin * readGroupMinimum(bytes, block + 4, group);
    const highScale = d * readGroupScale(bytes, block + 4, group + 1);
    const highMinimum = dmin * readGroupMinimum(bytes, block + 4, group + 1);
    const [pairs, start] = [block + quants + 16 * group, out + 32 * group];
    for (let i = 0; i < 32; i++) {
      const pair = bytes[pairs + i];
      const fifth = (bytes[block + 16 + i] >> group) & mask;
      target[start + i] = lowScale * ((pair & 15) | ((fifth & 1) << 4)) - lowMinimum;
      target[start + 32 + i] = highScale * ((pair >> 4) | ((fifth & 2) << 3)) - highMinimum;
    }
  }
}

function readUint32(bytes: Uint8Array, offset: number): number {
  return bytes[offset] | (bytes[offset + 1] << 8) | (bytes[offset + 2] << 16) | (bytes[offset + 3] << 24);
}

/** Unblocked types, named alike in both formats. */
const plainTypes = ["F32", "F16", "BF16", "F64", "I8", "I16", "I32", "I64"];

/**
 * Returns a function that converts whole blocks of a GGML type to float32, or undefined for F32.
 * @throws FORMAT_UNSUPPORTED for an unsupported type.
 */
export function getDequantizeFunction(
  type: string,
  name: string,
  path: string,
): ((bytes: Uint8Array<ArrayBuffer>, target: Float32Array) => void) | undefined {
  if (plainTypes.includes(type)) return getWidenFunction(type, name, path);
  if (!Object.hasOwn(blockDecoders, type))
    throw new LlamaGymError(
      "FORMAT_UNSUPPORTED",
      `Tensor "${name}" in ${path} is stored as ${type}, which is not supported. Supported: ` +
        `${[...plainTypes, ...Object.keys(blockDecoders)].join(", ")}. Download one of these, or requantize the model ` +
        "with llama.cpp's llama-quantize.",
    );
  const decode = blockDecoders[type];
  const { blockSize, blockBytes } = getGgmlType(getGgmlTypeCode(type))!;
  return (bytes, target) => {
    const table = getHalfToFloatTable();
    const half = (offset: number) => table[bytes[offset] | (bytes[offset + 1] << 8)];
    for (let block = 0, out = 0; block < bytes.length; block += blockBytes, out += blockSize)
      decode(bytes, block, target, out, half);
  };
}
