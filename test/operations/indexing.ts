import { mul } from "../../src/engine/graph/ops/elementwise.js";
import * as ops from "../../src/engine/graph/ops/indexing.js";
import { argMax, reduceMax, reduceMean, reduceSum } from "../../src/engine/graph/ops/reduce.js";
import { fixed, float, ids, integers, matrixSizes, type OperationCase, type Sizes } from "./case.js";
import { mapLastAxis, elementAt, buildArray, sum, type PlainArray } from "./plain.js";

const idTypes = ["int32", "int64"] as const;

const gatherRows = (table: PlainArray, rows: PlainArray): PlainArray =>
  buildArray([rows.shape[0], ...table.shape.slice(1)], ([i, ...rest]) => elementOfRow(table, rows.data[i], rest));

/** table[row, ...rest]; a table of one row is not a broadcast one. */
const elementOfRow = (table: PlainArray, row: number, rest: readonly number[]): number =>
  elementAt(table, [row, ...rest]);

const scatterAddRows = (values: PlainArray, rows: PlainArray, length: number): PlainArray =>
  buildArray([length, ...values.shape.slice(1)], ([row, ...rest]) =>
    sum(rows.data.flatMap((id, i) => (id === row ? [elementAt(values, [i, ...rest])] : []))),
  );

const pickLastAxis = (x: PlainArray, index: PlainArray): PlainArray => ({
  shape: index.shape,
  data: mapLastAxis((vector, i) => vector[index.data[i]], x).data,
});

const placeLastAxis = (values: PlainArray, index: PlainArray, length: number): PlainArray =>
  buildArray([...values.shape, length], (position) => {
    const before = position.slice(0, -1);
    return elementAt(index, before) === position[position.length - 1] ? elementAt(values, before) : 0;
  });

/** Sums (or other folds) over axes, by visiting every element once. */
function reduceAxes(
  x: PlainArray,
  axes: readonly number[],
  keepDims: boolean,
  fold: (values: number[]) => number,
): PlainArray {
  const kept = x.shape.map((size, axis) => (axes.includes(axis) ? 1 : size));
  const { data } = buildArray(kept, (index) => {
    const inside = buildArray(
      x.shape.map((size, axis) => (axes.includes(axis) ? size : 1)),
      (offset) =>
        elementAt(
          x,
          offset.map((position, axis) => (axes.includes(axis) ? position : index[axis])),
        ),
    );
    return fold([...inside.data]);
  });
  return { shape: keepDims ? kept : x.shape.filter((_, axis) => !axes.includes(axis)), data };
}

const maximum = (values: number[]): number => Math.max(...values);
const mean = (values: number[]): number => sum(values) / values.length;

const gatherSizes: readonly Sizes[] = [
  { rows: 3, taken: 7 },
  { rows: 1, taken: 3 },
  { rows: 5, taken: 1 },
  { rows: 3, taken: 0 },
];

export const indexingCases = {
  gatherRows: idTypes.map((dtype): OperationCase => ({
    title: `${dtype} row numbers, repeated`,
    sizes: gatherSizes,
    inputs: ({ rows, taken }) => ({
      table: float([rows, 5]),
      cube: float([rows, 1, 3]),
      vector: float([rows]),
      taken: ids([taken], rows, dtype),
    }),
    build: ({ table, cube, vector, taken }) => [
      ops.gatherRows(table, taken),
      ops.gatherRows(cube, taken),
      ops.gatherRows(vector, taken),
    ],
    reference: ({ table, cube, vector, taken }) => [
      gatherRows(table, taken),
      gatherRows(cube, taken),
      gatherRows(vector, taken),
    ],
    differentiable: ["table", "cube", "vector"],
  })),
  scatterAddRows: idTypes.map((dtype): OperationCase => ({
    title: `${dtype} row numbers, repeated`,
    sizes: gatherSizes,
    inputs: ({ rows, taken }) => ({
      values: float([taken, 5]),
      cube: float([taken, 3, 1]),
      vector: float([taken]),
      target: ids([taken], rows, dtype),
      rowsGiver: float([rows]),
    }),
    build: ({ values, cube, vector, target, rowsGiver }, { rows }) => [
      ops.scatterAddRows(values, target, rows),
      ops.scatterAddRows(cube, target, rows),
      ops.scatterAddRows(vector, target, rows),
      rowsGiver,
    ],
    reference: ({ values, cube, vector, target, rowsGiver }, { rows }) => [
      scatterAddRows(values, target, rows),
      scatterAddRows(cube, target, rows),
      scatterAddRows(vector, target, rows),
      rowsGiver,
    ],
    differentiable: ["values", "cube", "vector", "rowsGiver"],
  })),
  gatherRowsWithInverse: [
    {
      title: "a permutation with fillers that receive no gradient",
      sizes: [{ slots: 5 }],
      inputs: ({ slots }) => ({
        x: float([3, 7]),
        source: fixed([slots], [2, 0, 1, 0, 0], "int32"),
        slotOf: fixed([3], [1, 2, 0], "int64"),
        mask: fixed([slots, 1], [1, 1, 1, 0, 0]),
      }),
      build: ({ x, source, slotOf, mask }) => mul(ops.gatherRowsWithInverse(x, source, slotOf), mask),
      reference: ({ x, source, mask }) =>
        buildArray([5, 7], ([slot, column]) => mask.data[slot] * elementAt(x, [source.data[slot], column])),
      differentiable: ["x", "mask"],
    },
  ],
  pick: idTypes.map((dtype): OperationCase => ({
    title: `${dtype} indices`,
    sizes: matrixSizes,
    inputs: ({ rows, columns }) => ({
      x: float([rows, columns]),
      cube: float([rows, 3, columns]),
      vector: float([columns]),
      index: ids([rows], columns, dtype),
      cubeIndex: ids([rows, 3], columns, dtype),
      one: ids([], columns, dtype),
    }),
    build: ({ x, cube, vector, index, cubeIndex, one }) => [
      ops.pick(x, index),
      ops.pick(cube, cubeIndex),
      ops.pick(vector, one),
    ],
    reference: ({ x, cube, vector, index, cubeIndex, one }) => [
      pickLastAxis(x, index),
      pickLastAxis(cube, cubeIndex),
      pickLastAxis(vector, one),
    ],
    differentiable: ["x", "cube", "vector"],
  })),
  place: idTypes.map((dtype): OperationCase => ({
    title: `${dtype} indices`,
    sizes: matrixSizes,
    inputs: ({ rows, columns }) => ({
      x: float([rows]),
      square: float([rows, columns]),
      index: ids([rows], columns, dtype),
      squareIndex: ids([rows, columns], 5, dtype),
    }),
    build: ({ x, square, index, squareIndex }, { columns }) => [
      ops.place(x, index, columns),
      ops.place(square, squareIndex, 5),
    ],
    reference: ({ x, square, index, squareIndex }, { columns }) => [
      placeLastAxis(x, index, columns),
      placeLastAxis(square, squareIndex, 5),
    ],
    differentiable: ["x", "square"],
  })),
  reduceSum: [
    {
      title: "over one axis, several, all; means",
      sizes: matrixSizes,
      inputs: ({ rows, columns }) => ({ x: float([rows, 3, columns]) }),
      build: ({ x }) => [
        reduceSum(x),
        reduceSum(x, [0]),
        reduceSum(x, [-1], true),
        reduceSum(x, [2, 0]),
        reduceSum(x, [1, -1], true),
        reduceSum(x, []),
        reduceMean(x, [1]),
        reduceMean(x, [-1], true),
      ],
      reference: ({ x }) => [
        reduceAxes(x, [0, 1, 2], false, sum),
        reduceAxes(x, [0], false, sum),
        reduceAxes(x, [2], true, sum),
        reduceAxes(x, [0, 2], false, sum),
        reduceAxes(x, [1, 2], true, sum),
        x,
        reduceAxes(x, [1], false, mean),
        reduceAxes(x, [2], true, mean),
      ],
      differentiable: ["x"],
    },
    {
      title: "mean of all",
      sizes: matrixSizes.filter(({ rows }) => rows > 0),
      inputs: ({ rows, columns }) => ({ x: float([rows, 3, columns]) }),
      build: ({ x }) => [reduceMean(x), reduceMean(x, [0])],
      reference: ({ x }) => [reduceAxes(x, [0, 1, 2], false, mean), reduceAxes(x, [0], false, mean)],
      differentiable: ["x"],
    },
    {
      title: "integers",
      sizes: matrixSizes,
      inputs: ({ rows, columns }) => ({
        x: integers([rows, columns], "int32", -9, 9),
        y: integers([rows, columns], "int64", -9, 9),
      }),
      build: ({ x, y }) => [reduceSum(x), reduceSum(y, [0])],
      reference: ({ x, y }) => [reduceAxes(x, [0, 1], false, sum), reduceAxes(y, [0], false, sum)],
      differentiable: [],
    },
  ],
  reduceMax: [
    {
      title: "over the last axis",
      sizes: matrixSizes,
      inputs: ({ rows, columns }) => ({ x: float([rows, 3, columns]) }),
      build: ({ x }) => [reduceMax(x, [-1]), reduceMax(x, [1, 2], true), reduceMax(x, [])],
      reference: ({ x }) => [reduceAxes(x, [2], false, maximum), reduceAxes(x, [1, 2], true, maximum), x],
      differentiable: ["x"],
    },
    {
      title: "over the first axis and over all",
      sizes: matrixSizes.filter(({ rows }) => rows > 0),
      inputs: ({ rows, columns }) => ({ x: float([rows, columns]) }),
      build: ({ x }) => [reduceMax(x, [0]), reduceMax(x)],
      reference: ({ x }) => [reduceAxes(x, [0], false, maximum), reduceAxes(x, [0, 1], false, maximum)],
      differentiable: ["x"],
    },
  ],
  argMax: [
    {
      title: "the first of the largest",
      sizes: matrixSizes,
      inputs: ({ rows, columns }) => ({ x: integers([rows, columns], "float32", 0, 2), y: float([3, rows, columns]) }),
      build: ({ x, y }) => [argMax(x), argMax(y)],
      reference: ({ x, y }) =>
        [x, y].map((value) => ({
          shape: value.shape.slice(0, -1),
          data: mapLastAxis((vector) => vector.indexOf(maximum(vector)), value).data,
        })),
      differentiable: [],
    },
  ],
} satisfies Record<string, readonly OperationCase[]>;
