import { create } from "@bufbuild/protobuf";
import { invalidArgument } from "../../core/errors.js";
import { viewBytes } from "../../core/bytes.js";
import { DType, TensorSchema, type Tensor } from "./tinker_pb.js";

/**
 * Number types of a tensor of the Tinker API; integers of 32 bits and bfloat16 occur in results
 * only.
 */
export type WireDtype = "float32" | "int64" | "int32" | "bfloat16";

/** The cells of a matrix that a sparse tensor lists, in compressed rows (CSR). */
export interface SparseIndices {
  /** For each row the index of its first value, and the number of values at the end: [rows + 1]. */
  readonly crow: readonly number[];
  /** Column of each value. */
  readonly col: readonly number[];
}

/** A tensor of the Tinker API. */
export interface WireTensor {
  readonly dtype: WireDtype;
  readonly shape: readonly number[];
  /** Values in row-major order; of a sparse tensor, the listed ones. */
  readonly data: ArrayLike<number>;
  readonly sparse?: SparseIndices | undefined;
}

const DTYPES: Readonly<Record<WireDtype, DType>> = {
  float32: DType.DTYPE_FLOAT32,
  int64: DType.DTYPE_INT64,
  int32: DType.DTYPE_INT32,
  bfloat16: DType.DTYPE_BFLOAT16,
};

const DTYPE_NAMES = new Map(Object.entries(DTYPES).map(([name, dtype]) => [dtype, name as WireDtype]));

/** Bytes of one number. */
export const DTYPE_BYTES: Readonly<Record<WireDtype, number>> = { float32: 4, int64: 8, int32: 4, bfloat16: 2 };

/**
 * Maximum number of cells of a tensor, listed or not: a context of 128,000 tokens with 512 targets
 * each.
 */
const MAX_CELLS = 2 ** 26;

export const toDType = (dtype: WireDtype): DType => DTYPES[dtype];

/** @throws INVALID_ARGUMENT for a number type that the protocol lacks. */
export function fromDType(dtype: DType): WireDtype {
  const name = DTYPE_NAMES.get(dtype);
  if (name === undefined)
    throw invalidArgument(`A tensor has the number type ${dtype}; known are ${Object.keys(DTYPES).join(", ")}.`);
  return name;
}

/** Encodes numbers as little-endian bytes. */
export function encodeNumbers(dtype: WireDtype, numbers: ArrayLike<number>): Uint8Array<ArrayBuffer> {
  if (dtype === "float32") return viewBytes(Float32Array.from(numbers)) as Uint8Array<ArrayBuffer>;
  if (dtype === "int32") return viewBytes(Int32Array.from(numbers)) as Uint8Array<ArrayBuffer>;
  if (dtype === "bfloat16") throw invalidArgument("Tensors are not written as bfloat16. Use float32.");
  const words = new Int32Array(2 * numbers.length);
  for (let i = 0; i < numbers.length; i++) {
    words[2 * i] = numbers[i];
    words[2 * i + 1] = Math.floor(numbers[i] / 2 ** 32);
  }
  return viewBytes(words) as Uint8Array<ArrayBuffer>;
}

/**
 * Decodes little-endian bytes. @throws INVALID_ARGUMENT for a part of a number, and integers beyond
 * 2^53.
 */
export function decodeNumbers(dtype: WireDtype, bytes: Uint8Array): Float32Array | Float64Array | Int32Array {
  const size = DTYPE_BYTES[dtype];
  if (bytes.length % size !== 0)
    throw invalidArgument(`A tensor of ${dtype} has ${bytes.length} bytes, which is no multiple of ${size}.`);
  // Parts of a message begin at any byte, and typed arrays at multiples of their numbers' size.
  const { buffer } = new Uint8Array(bytes);
  if (dtype === "float32") return new Float32Array(buffer);
  if (dtype === "int32") return new Int32Array(buffer);
  if (dtype === "bfloat16")
    return new Float32Array(Uint32Array.from(new Uint16Array(buffer), (half) => half << 16).buffer);
  const words = new Int32Array(buffer);
  const numbers = new Float64Array(words.length / 2);
  for (let i = 0; i < numbers.length; i++) numbers[i] = words[2 * i + 1] * 2 ** 32 + (words[2 * i] >>> 0);
  const unsafe = numbers.find((value) => !Number.isSafeInteger(value));
  if (unsafe !== undefined)
    throw invalidArgument(`A tensor of int64 has the value ${unsafe}; at most 2^53 is possible.`);
  return numbers;
}

/** Encodes a tensor for a message. */
export function encodeTensor({ dtype, shape, data, sparse }: WireTensor): Tensor {
  const values = encodeNumbers(dtype, data);
  return create(TensorSchema, {
    dtype: toDType(dtype),
    shape: shape.map(BigInt),
    encoding:
      sparse === undefined
        ? { case: "dense", value: values }
        : {
            case: "sparseCsr",
            value: {
              values,
              crowIndices: encodeNumbers("int64", sparse.crow),
              colIndices: encodeNumbers("int64", sparse.col),
            },
          },
  });
}

/**
 * Decodes a tensor. A dense one without a shape is a list. @throws INVALID_ARGUMENT if shape and
 * values do not fit.
 */
export function decodeTensor({ dtype: code, shape, encoding }: Tensor): WireTensor {
  const dtype = fromDType(code);
  if (encoding.case === "sparseCsr") {
    const { values, crowIndices, colIndices } = encoding.value;
    const sparse = { crow: [...decodeNumbers("int64", crowIndices)], col: [...decodeNumbers("int64", colIndices)] };
    return checkTensor({ dtype, shape: shape.map(Number), data: decodeNumbers(dtype, values), sparse });
  }
  const data = decodeNumbers(dtype, encoding.value ?? new Uint8Array());
  return checkTensor({ dtype, shape: shape.length === 0 ? [data.length] : shape.map(Number), data });
}

/** Checks that values and indices fit the shape. @throws INVALID_ARGUMENT otherwise. */
export function checkTensor(given: WireTensor): WireTensor {
  const { shape, data, sparse } = given;
  const cells = shape.reduce((product, size) => product * size, 1);
  if (shape.some((size) => !Number.isInteger(size) || size < 0) || cells > MAX_CELLS)
    throw invalidArgument(`A tensor has the shape [${shape.join(", ")}]; at most ${MAX_CELLS} cells are possible.`);
  if (sparse === undefined) {
    if (data.length !== cells)
      throw invalidArgument(`A tensor of shape [${shape.join(", ")}] has ${data.length} values; expected ${cells}.`);
    return given;
  }
  const { crow, col } = sparse;
  const fits =
    shape.length === 2 &&
    crow.length === shape[0] + 1 &&
    crow[0] === 0 &&
    crow.at(-1) === col.length &&
    col.length === data.length &&
    crow.every((start, row) => row === 0 || start >= crow[row - 1]) &&
    col.every((column) => Number.isInteger(column) && column >= 0 && column < shape[1]);
  if (!fits)
    throw invalidArgument(
      `The row and column indices of a sparse tensor of shape [${shape.join(", ")}] do not fit its ${data.length} values.`,
    );
  return given;
}

/** Returns the values of a tensor with those that a sparse one does not list, which are `fill`. */
export function toDense({ shape, data, sparse }: WireTensor, fill = 0): ArrayLike<number> {
  if (sparse === undefined) return data;
  const [rows, columns] = shape;
  const dense = new Float64Array(rows * columns).fill(fill);
  for (let row = 0; row < rows; row++) {
    for (let i = sparse.crow[row]; i < sparse.crow[row + 1]; i++) dense[row * columns + sparse.col[i]] = data[i];
  }
  return dense;
}

/** Returns a matrix that lists some cells only. */
export function toSparse(
  { dtype, shape, data }: WireTensor,
  cells: readonly { readonly row: number; readonly column: number }[],
): WireTensor {
  const [rows, columns] = shape;
  const listed = cells.toSorted((a, b) => a.row - b.row || a.column - b.column);
  const crow = Array.from({ length: rows + 1 }, () => 0);
  for (const { row } of listed) crow[row + 1]++;
  for (let row = 0; row < rows; row++) crow[row + 1] += crow[row];
  return {
    dtype,
    shape,
    data: listed.map(({ row, column }) => data[row * columns + column]),
    sparse: { crow, col: listed.map(({ column }) => column) },
  };
}
