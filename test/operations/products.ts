import type { Dim } from "../../src/engine/graph/dim.js";
import { addMatmul, matmul, type MatmulAttributes } from "../../src/engine/graph/ops/matmul.js";
import { dropout } from "../../src/engine/graph/ops/dropout.js";
import { int8GradientMatmul, int8Matmul, int8WeightMatmul, type RowBits } from "../../src/engine/graph/ops/int8.js";
import { dequantize, quantizedMatmul } from "../../src/engine/graph/ops/quantized.js";
import { RandomStream } from "../../src/core/random/random-stream.js";
import { ZERO_CODE, type CodeType } from "../../src/engine/graph/emitter.js";
import type { DType } from "../../src/engine/tensor/dtype.js";
import { between, float, integers, matrixSizes, type Dims, type OperationCase, type Sizes } from "./case.js";
import { elementAt, broadcastShapes, buildArray, range, sum, type PlainArray } from "./plain.js";

const transposes = [
  { transposeA: false, transposeB: false, alpha: 1 },
  { transposeA: true, transposeB: false, alpha: 0.5 },
  { transposeA: false, transposeB: true, alpha: -2 },
  { transposeA: true, transposeB: true, alpha: 1 },
];

/** alpha * op(a) op(b), element by element. */
function matmulReference(
  a: PlainArray,
  b: PlainArray,
  { transposeA, transposeB, alpha }: MatmulAttributes,
): PlainArray {
  const last = (x: PlainArray, back: number) => x.shape[x.shape.length - back];
  const [rows, inner] = transposeA ? [last(a, 1), last(a, 2)] : [last(a, 2), last(a, 1)];
  const columns = transposeB ? last(b, 2) : last(b, 1);
  // Size-1 matrices must not be taken for broadcast ones, so only the leading axes broadcast.
  const lead = broadcastShapes(a.shape.slice(0, -2), b.shape.slice(0, -2));
  return buildArray([...lead, rows, columns], (index) => {
    const [row, column] = index.slice(-2);
    const before = index.slice(0, -2);
    const terms = range(inner).map(
      (k) =>
        elementAt(a, [...before, ...(transposeA ? [k, row] : [row, k])]) *
        elementAt(b, [...before, ...(transposeB ? [column, k] : [k, column])]),
    );
    return alpha * sum(terms);
  });
}

const productSizes: readonly Sizes[] = [
  { rows: 3, inner: 5, columns: 7 },
  { rows: 1, inner: 1, columns: 3 },
  { rows: 5, inner: 7, columns: 1 },
  { rows: 0, inner: 3, columns: 5 },
  { rows: 3, inner: 5, columns: 0 },
  { rows: 3, inner: 0, columns: 5 },
];

const batchedSizes: readonly Sizes[] = [
  { batch: 3, rows: 1, inner: 5, columns: 3 },
  { batch: 1, rows: 3, inner: 1, columns: 1 },
  { batch: 3, rows: 0, inner: 3, columns: 1 },
  { batch: 1, rows: 3, inner: 1, columns: 0 },
  { batch: 3, rows: 3, inner: 0, columns: 5 },
];
/** ONNX Runtime refuses an empty batch with a broadcast one. */
const emptyBatch: Sizes = { batch: 0, rows: 3, inner: 1, columns: 5 };

/** Leading dimensions of the factors: the same, stretched, missing on one side. */
const leadingAxes: readonly (readonly [left: readonly (string | number)[], right: readonly (string | number)[]])[] = [
  [["batch"], ["batch"]],
  [
    ["batch", 3],
    ["batch", 1],
  ],
  [["batch", 3], [3]],
  [["batch", 2], []],
  [[], [2, "batch"]],
];

const isBroadcast = (left: readonly unknown[], right: readonly unknown[]): boolean =>
  left.length !== right.length || left.some((dim, i) => dim !== right[i]);

const resolveDims = (lead: readonly (string | number)[], dims: Dims): Dim[] =>
  lead.map((dim) => (typeof dim === "number" ? dim : dims[dim]));

const swapIf = <T>([a, b]: readonly [T, T], when: boolean): readonly [T, T] => (when ? [b, a] : [a, b]);

const matmulCases = transposes.flatMap((options): OperationCase[] => {
  const { transposeA, transposeB, alpha } = options;
  const name = `${transposeA ? "aT" : "a"} x ${transposeB ? "bT" : "b"}, alpha ${alpha}`;
  return [
    {
      title: name,
      sizes: productSizes,
      inputs: ({ rows, inner, columns }) => ({
        a: float(swapIf([rows, inner], transposeA)),
        b: float(swapIf([inner, columns], transposeB)),
      }),
      build: ({ a, b }) => matmul(a, b, options),
      reference: ({ a, b }) => matmulReference(a, b, options),
      differentiable: ["a", "b"],
    },
    ...leadingAxes.map(([left, right]): OperationCase => ({
      title: `${name}, [${[...left, ".."].join(", ")}] x [${[...right, ".."].join(", ")}]`,
      sizes: isBroadcast(left, right) ? batchedSizes : [...batchedSizes, emptyBatch],
      inputs: (dims) => ({
        a: float([...resolveDims(left, dims), ...swapIf([dims.rows, dims.inner], transposeA)]),
        b: float([...resolveDims(right, dims), ...swapIf([dims.inner, dims.columns], transposeB)]),
      }),
      build: ({ a, b }) => matmul(a, b, options),
      reference: ({ a, b }) => matmulReference(a, b, options),
      differentiable: ["a", "b"],
    })),
  ];
});

const addMatmulCases = transposes.map((options): OperationCase => {
  const { transposeA, transposeB, alpha } = options;
  return {
    title: `c + ${transposeA ? "aT" : "a"} x ${transposeB ? "bT" : "b"}, alpha ${alpha}`,
    sizes: productSizes,
    inputs: ({ rows, inner, columns }) => ({
      a: float(swapIf([rows, inner], transposeA)),
      b: float(swapIf([inner, columns], transposeB)),
      c: float([rows, columns]),
    }),
    build: ({ a, b, c }) => addMatmul(c, a, b, options),
    reference: ({ a, b, c }) => {
      const { shape, data } = matmulReference(a, b, options);
      return { shape, data: data.map((value, i) => value + c.data[i]) };
    },
    differentiable: ["a", "b", "c"],
  };
});

const dequantizeCase = (
  dtype: DType,
  low: number,
  high: number,
  blockSize: number,
  frozen: boolean,
): OperationCase => ({
  title: `${dtype}, blocks of ${blockSize}${frozen ? ", outside the graph" : ""}`,
  sizes: [{}],
  inputs: () => ({
    codes: { ...integers([5, 3 * blockSize], dtype, low, high), frozen },
    scales: { ...between([5, 3], 0.01, 0.1), frozen },
    zeroPoints: { ...integers([5, 3], dtype, low, high), frozen },
  }),
  build: ({ codes, scales, zeroPoints }) => dequantize(codes, scales, zeroPoints, blockSize),
  reference: ({ codes, scales, zeroPoints }) =>
    buildArray(codes.shape, ([row, column]) => {
      const block = [row, Math.floor(column / blockSize)];
      return (elementAt(codes, [row, column]) - elementAt(zeroPoints, block)) * elementAt(scales, block);
    }),
  differentiable: [],
});

/** Codes as the middle one and offsets from it, in bytes and by element from the same numbers. */
const quantizedMatmulCase = (bits: 4 | 8): OperationCase => {
  const blockSize = 32;
  const midpoint = 2 ** (bits - 1);
  const codeType = bits === 4 ? "uint4" : "uint8";
  const codes = (random: RandomStream, count: number) =>
    Array.from({ length: count }, () => random.integers(0, 2 * midpoint));
  // The bytes hold the codes drawn for "codes" from an equal stream.
  const drawn = (count: number) => codes(new RandomStream(5), count);
  const packed = (count: number) => {
    const elements = drawn((count * 8) / bits);
    return bits === 8 ? elements : Array.from({ length: count }, (_, i) => elements[2 * i] + 16 * elements[2 * i + 1]);
  };
  return {
    title: `${bits} bits`,
    sizes: [{ rows: 3 }, { rows: 1 }],
    inputs: ({ rows }) => ({
      x: float([rows, 2 * blockSize]),
      bytes: {
        dtype: "uint8",
        shape: [5, 2, (blockSize * bits) / 8],
        values: (_, count) => packed(count),
        frozen: true,
      },
      scales: { ...between([5, 2], 0.01, 0.1), frozen: true },
      codes: { dtype: codeType, shape: [5, 2 * blockSize], values: (_, count) => drawn(count), frozen: true },
      zeroPoints: {
        dtype: codeType,
        shape: [5, 2],
        values: (_, count) => Array.from({ length: count }, () => midpoint),
        frozen: true,
      },
    }),
    build: ({ x, bytes, scales, codes: elements, zeroPoints }) =>
      quantizedMatmul(x, { bytes, scales, codes: elements, zeroPoints }, { bits, blockSize }),
    reference: ({ x, scales, codes: elements }) =>
      buildArray([x.shape[0], 5], ([row, out]) =>
        sum(
          range(2 * blockSize).map((k) => {
            const weight =
              (elementAt(elements, [out, k]) - midpoint) * elementAt(scales, [out, Math.floor(k / blockSize)]);
            return elementAt(x, [row, k]) * weight;
          }),
        ),
      ),
    differentiable: ["x"],
  };
};

const dropoutCase = (title: string, length: number, offset: number): OperationCase => ({
  title,
  sizes: matrixSizes,
  inputs: ({ rows, columns }) => ({ x: float([rows, columns]), pattern: between([length], 0, 2) }),
  build: ({ x, pattern }) => dropout(x, pattern, offset),
  reference: ({ x, pattern }) =>
    buildArray(x.shape, ([row, column]) => {
      const element = row * x.shape[1] + column;
      return elementAt(x, [row, column]) * elementAt(pattern, [(element + offset) % length]);
    }),
  differentiable: ["x"],
});

/** An eight-bit product is right to about a hundredth of its largest terms. */
const int8Tolerance = 0.1;

const int8Sizes = [{ rows: 3 }, { rows: 1 }, { rows: 5 }];
/** A frozen matrix has one size in a case. */
const int8Columns = [5, 7, 1];

const int8MatmulCase = (columns: number): OperationCase => ({
  title: `rounded to 8 bits, ${columns} columns`,
  sizes: int8Sizes,
  inputs: ({ rows }) => ({ a: between([rows, 7], -1, 1), b: { ...between([7, columns], -1, 1), frozen: true } }),
  build: ({ a, b }) => int8Matmul(a, b),
  reference: ({ a, b }) => matmulReference(a, b, transposes[0]),
  differentiable: [],
  tolerance: int8Tolerance,
});

/**
 * Sums of two products of the largest codes do not fit into 16 bits, in which some processors add
 * them.
 */
const int8LargeCase: OperationCase = {
  ...int8MatmulCase(5),
  title: "rounded to 8 bits, all near the largest",
  inputs: ({ rows }) => ({ a: between([rows, 7], 0.9, 1), b: { ...between([7, 5], 0.9, 1), frozen: true } }),
};

const int8GradientCase = (transposeB: boolean, columns: number): OperationCase => ({
  title: `exact forward, weight [${transposeB ? "out, in" : "in, out"}], ${columns} columns`,
  sizes: int8Sizes,
  inputs: ({ rows }) => ({
    x: between([rows, 7], -1, 1),
    weight: { ...between(swapIf([7, columns], transposeB), -1, 1), frozen: true },
  }),
  build: ({ x, weight }) => int8GradientMatmul(x, weight, { transposeB }),
  reference: ({ x, weight }) => matmulReference(x, weight, { transposeA: false, transposeB, alpha: 1 }),
  differentiable: ["x"],
  tolerance: int8Tolerance,
});

interface Int8WeightCase {
  readonly transposeB: boolean;
  /** Bits of the rows, forward and backward. */
  readonly bits: RowBits;
  readonly codeType: CodeType;
  readonly hasScales?: boolean;
  /** Smallest code, without the code of 0. */
  readonly smallest?: number;
}

/** Codes of a matrix, with a scale per output. */
function int8WeightCase({
  transposeB,
  bits,
  codeType,
  hasScales = true,
  smallest = -127,
}: Int8WeightCase): OperationCase {
  const layout = `codes [${transposeB ? "out, in" : "in, out"}]${hasScales ? "" : " without scales"}`;
  const zero = codeType === "int8" ? 0 : ZERO_CODE;
  return {
    title: `${bits} bits, ${codeType} ${layout}, from ${smallest} on`,
    sizes: int8Sizes,
    inputs: ({ rows }) => ({
      // With the largest codes, sums of two products do not fit into 16 bits.
      x: between([rows, 7], smallest > 0 ? 0.9 : -1, 1),
      codes: { ...integers(swapIf([7, 5], transposeB), codeType, zero + smallest, zero + 127), frozen: true },
      ...(hasScales ? { scales: { ...between([5], 0.001, 0.01), frozen: true } } : {}),
    }),
    build: ({ x, codes, scales }) => int8WeightMatmul(x, { codes, scales }, { transposeB, bits, gradientBits: bits }),
    reference: ({ x, codes, scales }) =>
      buildArray([x.shape[0], 5], ([row, out]) => {
        const codeAt = (k: number) => elementAt(codes, transposeB ? [out, k] : [k, out]) - zero;
        const terms = range(7).map((k) => elementAt(x, [row, k]) * codeAt(k));
        return sum(terms) * (scales === undefined ? 1 : elementAt(scales, [out]));
      }),
    differentiable: ["x"],
    tolerance: (bits === 8 ? int8Tolerance : 1e-3) * (hasScales ? 1 : 20),
  };
}

const int8WeightCases = (["int8", "uint8"] as const).flatMap((codeType) => [
  ...[true, false].flatMap((transposeB) =>
    ([8, 16] as const).map((bits) => int8WeightCase({ transposeB, bits, codeType })),
  ),
  int8WeightCase({ transposeB: false, bits: 16, codeType, hasScales: false }),
  int8WeightCase({ transposeB: false, bits: 16, codeType, smallest: 126 }),
]);

export const productCases = {
  int8WeightMatmul: int8WeightCases,
  int8Matmul: [...int8Columns.map(int8MatmulCase), int8LargeCase],
  int8GradientMatmul: [true, false].flatMap((transposeB) =>
    int8Columns.map((columns) => int8GradientCase(transposeB, columns)),
  ),
  dropout: [
    dropoutCase("a pattern longer than the values", 64, 5),
    dropoutCase("a pattern that repeats", 4, 3),
    dropoutCase("a pattern that ends with the values", 15, 0),
  ],
  matmul: matmulCases,
  addMatmul: addMatmulCases,
  quantizedMatmul: [quantizedMatmulCase(4), quantizedMatmulCase(8)],
  dequantize: [
    dequantizeCase("int8", -128, 127, 16, false),
    dequantizeCase("uint8", 0, 255, 32, false),
    dequantizeCase("int8", -128, 127, 64, true),
    dequantizeCase("int4", -8, 7, 16, true),
    dequantizeCase("uint4", 0, 15, 32, true),
  ],
} satisfies Record<string, readonly OperationCase[]>;
