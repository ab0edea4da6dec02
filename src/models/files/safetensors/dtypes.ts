import { LlamaGymError } from "../../../core/errors.js";
import { bfloat16ToFloat32, float16ToFloat32 } from "../float16.js";

/** Bits per element of each safetensors type. */
export const dtypeBits: Readonly<Record<string, number>> = {
  F64: 64,
  I64: 64,
  U64: 64,
  C64: 64,
  F32: 32,
  I32: 32,
  U32: 32,
  F16: 16,
  BF16: 16,
  I16: 16,
  U16: 16,
  I8: 8,
  U8: 8,
  BOOL: 8,
  F8_E4M3: 8,
  F8_E5M2: 8,
  F8_E8M0: 8,
  F6_E2M3: 6,
  F6_E3M2: 6,
  F4: 4,
};

type WidenFunction = (bytes: Uint8Array<ArrayBuffer>, target: Float32Array) => void;

/** An array of numbers of any type. */
interface NumberArray {
  readonly length: number;
  readonly [index: number]: number | bigint;
}

/** Creates a conversion that rounds element by element to float32. */
function createConverter(
  view: (buffer: ArrayBuffer, offset: number, length: number) => NumberArray,
  bytesPerElement: number,
): WidenFunction {
  return (bytes, target) => {
    const source = view(bytes.buffer, bytes.byteOffset, bytes.length / bytesPerElement);
    for (let i = 0; i < source.length; i++) target[i] = Number(source[i]);
  };
}

const widenFunctions: Readonly<Record<string, WidenFunction>> = {
  F16: (bytes, target) => float16ToFloat32(viewUint16(bytes), target),
  BF16: (bytes, target) => bfloat16ToFloat32(viewUint16(bytes), target),
  F64: createConverter((buffer, offset, length) => new Float64Array(buffer, offset, length), 8),
  I64: createConverter((buffer, offset, length) => new BigInt64Array(buffer, offset, length), 8),
  U64: createConverter((buffer, offset, length) => new BigUint64Array(buffer, offset, length), 8),
  I32: createConverter((buffer, offset, length) => new Int32Array(buffer, offset, length), 4),
  U32: createConverter((buffer, offset, length) => new Uint32Array(buffer, offset, length), 4),
  I16: createConverter((buffer, offset, length) => new Int16Array(buffer, offset, length), 2),
  U16: createConverter((buffer, offset, length) => new Uint16Array(buffer, offset, length), 2),
  I8: createConverter((buffer, offset, length) => new Int8Array(buffer, offset, length), 1),
  U8: createConverter((buffer, offset, length) => new Uint8Array(buffer, offset, length), 1),
  BOOL: createConverter((buffer, offset, length) => new Uint8Array(buffer, offset, length), 1),
};

function viewUint16(bytes: Uint8Array<ArrayBuffer>): Uint16Array {
  return new Uint16Array(bytes.buffer, bytes.byteOffset, bytes.length / 2);
}

/**
 * Returns the conversion of a stored type to float32, or undefined for F32. @throws
 * FORMAT_UNSUPPORTED for complex numbers and floats below 16 bits.
 */
export function getWidenFunction(dtype: string, name: string, path: string): WidenFunction | undefined {
  if (dtype === "F32") return undefined;
  const widen = widenFunctions[dtype];
  if (widen !== undefined) return widen;
  throw new LlamaGymError(
    "FORMAT_UNSUPPORTED",
    `Tensor "${name}" in ${path} is stored as ${dtype}, which is not supported. ` +
      `Supported: F32, ${Object.keys(widenFunctions).join(", ")}.`,
  );
}
