import * as ops from "../../src/engine/graph/ops/layout.js";
import { subDims } from "../../src/engine/graph/dim.js";
import { addDims, float, integers, matrixSizes, mulDims, sequence, type OperationCase, type Sizes } from "./case.js";
import { elementAt, buildArray, type PlainArray } from "./plain.js";

const reshape = ({ data }: PlainArray, shape: readonly number[]): PlainArray => ({ shape, data });

function sliceAxis(x: PlainArray, axis: number, start: number, length: number): PlainArray {
  const shape = x.shape.map((size, i) => (i === axis ? length : size));
  return buildArray(shape, (index) =>
    elementAt(
      { ...x },
      index.map((position, i) => (x.shape[i] === 1 ? 0 : i === axis ? position + start : position)),
    ),
  );
}

function padAxis(x: PlainArray, axis: number, before: number, after: number): PlainArray {
  const shape = x.shape.map((size, i) => (i === axis ? before + size + after : size));
  return buildArray(shape, (index) => {
    const position = index[axis] - before;
    return position < 0 || position >= x.shape[axis] ? 0 : elementAt(x, index.with(axis, position));
  });
}

function concatArrays(axis: number, ...values: readonly PlainArray[]): PlainArray {
  const shape = values[0].shape.with(
    axis,
    values.reduce((total, value) => total + value.shape[axis], 0),
  );
  return buildArray(shape, (index) => {
    let position = index[axis];
    const part = values.find((value) => {
      if (position < value.shape[axis]) return true;
      position -= value.shape[axis];
      return false;
    })!;
    return elementAt(part, index.with(axis, position));
  });
}

const permuteAxes = (x: PlainArray, permutation: readonly number[]): PlainArray =>
  buildArray(
    permutation.map((axis) => x.shape[axis]),
    (index) =>
      elementAt(
        x,
        x.shape.map((_, axis) => index[permutation.indexOf(axis)]),
      ),
  );

const expandTo = (x: PlainArray, shape: readonly number[]): PlainArray =>
  buildArray(shape, (index) => elementAt(x, index));

/** Sizes with a part of either half empty too. */
const partSizes: readonly Sizes[] = [
  { rows: 3, own: 5 },
  { rows: 7, own: 1 },
  { rows: 0, own: 3 },
  { rows: 5, own: 0 },
];

export const layoutCases = {
  reshape: [
    {
      title: "axes merge, split and appear",
      sizes: matrixSizes,
      inputs: ({ rows, columns }) => ({ x: float([rows, 6, columns]), scalar: float([1, 1]) }),
      build: ({ x, scalar }, { rows, columns }) => [
        ops.reshape(x, [mulDims(rows, 6, columns)]),
        ops.reshape(x, [mulDims(rows, 2), mulDims(3, columns)]),
        ops.reshape(x, [rows, 1, 2, 3, columns]),
        ops.reshape(scalar, []),
        ops.reshape(x, [columns, rows, 6]),
      ],
      reference: ({ x, scalar }, { rows, columns }) => [
        reshape(x, [rows * 6 * columns]),
        reshape(x, [rows * 2, 3 * columns]),
        reshape(x, [rows, 1, 2, 3, columns]),
        reshape(scalar, []),
        reshape(x, [columns, rows, 6]),
      ],
      differentiable: ["x", "scalar"],
    },
    {
      title: "empty static axes with a named one",
      sizes: matrixSizes,
      inputs: ({ rows }) => ({ x: sequence([rows, 0, 3], "int32"), y: sequence([rows, 1], "int64") }),
      build: ({ x, y }, { rows }) => [ops.reshape(x, [3, 0, rows]), ops.reshape(y, [rows])],
      reference: ({ y }, { rows }) => [{ shape: [3, 0, rows], data: [] }, reshape(y, [rows])],
      differentiable: [],
    },
  ],
  computeAfter: [
    {
      title: "the first of two values",
      sizes: matrixSizes,
      inputs: ({ rows, columns }) => ({ x: float([rows, columns]), y: float([rows, columns]) }),
      build: ({ x, y }) => ops.computeAfter(x, y),
      reference: ({ x }) => x,
      differentiable: ["x"],
    },
  ],
  transpose: [
    {
      title: "permutations of two, three and four axes",
      sizes: matrixSizes,
      inputs: ({ rows, columns }) => ({
        x: float([rows, 2, columns]),
        y: float([columns, rows]),
        z: float([1, rows, 3, columns]),
      }),
      build: ({ x, y, z }) => [
        ops.transpose(x, [2, 0, 1]),
        ops.transpose(x, [1, 2, 0]),
        ops.transpose(y, [1, 0]),
        ops.transpose(z, [0, 2, 1, 3]),
      ],
      reference: ({ x, y, z }) => [
        permuteAxes(x, [2, 0, 1]),
        permuteAxes(x, [1, 2, 0]),
        permuteAxes(y, [1, 0]),
        permuteAxes(z, [0, 2, 1, 3]),
      ],
      differentiable: ["x", "y", "z"],
    },
  ],
  expand: [
    {
      title: "size-1 axes, missing axes, a scalar",
      sizes: matrixSizes,
      inputs: ({ rows, columns }) => ({
        x: float([rows, 1]),
        y: float([columns]),
        scalar: float([]),
        flags: integers([1, columns], "bool", 0, 1),
      }),
      build: ({ x, y, scalar, flags }, { rows, columns }) => [
        ops.expand(x, [3, rows, columns]),
        ops.expand(y, [rows, columns]),
        ops.expand(scalar, [columns, rows]),
        ops.expand(flags, [rows, columns]),
      ],
      reference: ({ x, y, scalar, flags }, { rows, columns }) => [
        expandTo(x, [3, rows, columns]),
        expandTo(y, [rows, columns]),
        expandTo(scalar, [columns, rows]),
        expandTo(flags, [rows, columns]),
      ],
      differentiable: ["x", "y", "scalar"],
    },
  ],
  concat: [
    {
      title: "parts of named and of fixed length, along the first and the last axis",
      sizes: partSizes,
      inputs: ({ rows, own }) => ({
        a: float([rows, 3]),
        b: float([own, 3]),
        c: float([2, 3]),
        d: float([rows, 1]),
        e: float([rows, own]),
      }),
      build: ({ a, b, c, d, e }) => [ops.concat([a, b, c, a], 0), ops.concat([d, e], -1), ops.concat([a], 1)],
      reference: ({ a, b, c, d, e }) => [concatArrays(0, a, b, c, a), concatArrays(1, d, e), a],
      differentiable: ["a", "b", "c", "d", "e"],
    },
    {
      title: "integers",
      sizes: partSizes,
      inputs: ({ rows, own }) => ({ a: sequence([rows], "int64"), b: sequence([own], "int64") }),
      build: ({ a, b }) => ops.concat([b, a], 0),
      reference: ({ a, b }) => concatArrays(0, b, a),
      differentiable: [],
    },
  ],
  slice: [
    {
      title: "named and fixed bounds",
      sizes: partSizes,
      inputs: ({ rows, own }) => ({ x: float([addDims(rows, own), 5]), rowsGiver: sequence([rows], "int32") }),
      build: ({ x, rowsGiver }, { rows, own }) => [
        ops.slice(x, 0, 0, rows),
        ops.slice(x, 0, rows, own),
        ops.slice(x, -1, 1, 3),
        ops.slice(x, 1, 4, 1),
        ops.slice(x, 0, rows, 0),
        rowsGiver,
      ],
      reference: ({ x, rowsGiver }, { rows, own }) => [
        sliceAxis(x, 0, 0, rows),
        sliceAxis(x, 0, rows, own),
        sliceAxis(x, 1, 1, 3),
        sliceAxis(x, 1, 4, 1),
        { shape: [0, 5], data: [] },
        rowsGiver,
      ],
      differentiable: ["x"],
    },
  ],
  split: [
    {
      title: "all parts, and a loss that sees only some",
      sizes: partSizes,
      inputs: ({ rows, own }) => ({
        x: float([addDims(rows, own, 2), 6]),
        y: float([rows, 7]),
        ownGiver: sequence([own], "int32"),
      }),
      build: ({ x, y, ownGiver }, { rows, own }) => [
        ...ops.split(x, 0, [rows, own, 2]),
        ops.split(y, -1, [2, 1, 4])[1],
        ...ops.split(y, 1, [7]),
        ownGiver,
      ],
      reference: ({ x, y, ownGiver }, { rows, own }) => [
        sliceAxis(x, 0, 0, rows),
        sliceAxis(x, 0, rows, own),
        sliceAxis(x, 0, rows + own, 2),
        sliceAxis(y, 1, 2, 1),
        y,
        ownGiver,
      ],
      differentiable: ["x", "y"],
    },
  ],
  pad: [
    {
      title: "named and fixed zeros before and after",
      sizes: partSizes,
      inputs: ({ rows, own }) => ({ x: float([rows, 3]), y: float([own]), scalar: float([1]) }),
      build: ({ x, y, scalar }, { rows, own }) => [
        ops.pad(x, 0, own, 2),
        ops.pad(x, 1, 0, own),
        ops.pad(y, 0, rows, 0),
        ops.pad(scalar, 0, 1, subDims(addDims(rows, own), own)),
        ops.pad(x, 0, 0, 0),
      ],
      reference: ({ x, y, scalar }, { rows, own }) => [
        padAxis(x, 0, own, 2),
        padAxis(x, 1, 0, own),
        padAxis(y, 0, rows, 0),
        padAxis(scalar, 0, 1, rows),
        x,
      ],
      differentiable: ["x", "y", "scalar"],
    },
    {
      title: "integers",
      sizes: partSizes,
      inputs: ({ rows, own }) => ({ x: sequence([rows], "int32"), y: sequence([own], "int64") }),
      build: ({ x, y }) => [ops.pad(x, 0, 1, 2), ops.pad(y, 0, 2, 1)],
      reference: ({ x, y }) => [padAxis(x, 0, 1, 2), padAxis(y, 0, 2, 1)],
      differentiable: [],
    },
  ],
} satisfies Record<string, readonly OperationCase[]>;
