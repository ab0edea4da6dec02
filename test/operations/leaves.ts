import { constant, dimValue, intScalar, scalar } from "../../src/engine/graph/ops/leaves.js";
import { add, cast } from "../../src/engine/graph/ops/elementwise.js";
import { addDims, float, integers, matrixSizes, mulDims, type OperationCase } from "./case.js";
import type { PlainArray } from "./plain.js";

const scalarArray = (value: number): PlainArray => ({ shape: [], data: [value] });
const counts: readonly number[] = Array.from({ length: 35 }, (_, i) => i - 10);

export const leafCases = {
  constant: [
    {
      title: "every element type that a graph computes with",
      sizes: [{}],
      inputs: () => ({}),
      build: () => [
        constant("float32", [5, 7], Float32Array.from(counts)),
        constant("float32", [3, 1], Float32Array.of(0.5, -0, 1e-30)),
        constant("int64", [35], BigInt64Array.from(counts, BigInt)),
        constant("int32", [7, 5], Int32Array.from(counts)),
        constant("bool", [3], Uint8Array.of(1, 0, 1)),
        constant("float32", [0, 3], new Float32Array(0)),
        scalar(-2.5),
        intScalar(7),
      ],
      reference: () => [
        { shape: [5, 7], data: counts },
        { shape: [3, 1], data: [0.5, -0, Math.fround(1e-30)] },
        { shape: [35], data: counts },
        { shape: [7, 5], data: counts },
        { shape: [3], data: [1, 0, 1] },
        { shape: [0, 3], data: [] },
        scalarArray(-2.5),
        scalarArray(7),
      ],
      differentiable: [],
    },
    {
      title: "equal data in another shape or type is another constant",
      sizes: [{}],
      inputs: () => ({}),
      build: () => [
        constant("float32", [2, 1], Float32Array.of(1, 2)),
        constant("float32", [1, 2], Float32Array.of(1, 2)),
        constant("int32", [2], Int32Array.from(new Int32Array(Float32Array.of(1, 2).buffer))),
        constant("float32", [], Float32Array.of(0)),
        constant("float32", [], Float32Array.of(-0)),
      ],
      reference: () => [
        { shape: [2, 1], data: [1, 2] },
        { shape: [1, 2], data: [1, 2] },
        { shape: [2], data: [0x3f800000, 0x40000000] },
        scalarArray(0),
        scalarArray(-0),
      ],
      differentiable: [],
    },
  ],
  input: [
    {
      title: "given at each run",
      sizes: matrixSizes,
      inputs: ({ rows, columns }) => ({
        x: float([rows, columns]),
        scalar: float([]),
        ids: integers([columns], "int32", -5, 5),
        wide: integers([rows], "int64", -5, 5),
        flags: integers([rows, 1], "bool", 0, 1),
      }),
      build: ({ x, scalar: value, ids, wide, flags }) => [add(x, value), x, ids, wide, flags],
      reference: ({ x, scalar: value, ids, wide, flags }) => [
        { shape: x.shape, data: x.data.map((v) => v + value.data[0]) },
        x,
        ids,
        wide,
        flags,
      ],
      differentiable: ["x", "scalar"],
    },
  ],
  weight: [
    {
      title: "outside the graph",
      sizes: matrixSizes,
      inputs: ({ rows }) => ({
        x: float([rows, 1]),
        w: { ...float([5]), frozen: true },
        codes: { ...integers([3, 5], "int8", -9, 9), frozen: true },
      }),
      build: ({ x, w, codes }) => [add(x, w), cast(codes, "float32")],
      reference: ({ x, w, codes }) => [
        { shape: [x.shape[0], 5], data: x.data.flatMap((v) => w.data.map((u) => u + v)) },
        codes,
      ],
      differentiable: ["x", "w"],
    },
  ],
  dimValue: [
    {
      title: "named sizes, their sums and products",
      sizes: matrixSizes,
      inputs: ({ rows, columns }) => ({ x: float([rows, columns]) }),
      build: ({ x }, { rows, columns }) => [
        add(x, dimValue(rows)),
        dimValue(mulDims(rows, columns)),
        dimValue(addDims(mulDims(rows, rows, 3), mulDims(columns, -2), rows, 5)),
      ],
      reference: ({ x }, { rows, columns }) => [
        { shape: x.shape, data: x.data.map((v) => v + rows) },
        scalarArray(rows * columns),
        scalarArray(3 * rows * rows - 2 * columns + rows + 5),
      ],
      differentiable: ["x"],
    },
  ],
} satisfies Record<string, readonly OperationCase[]>;
