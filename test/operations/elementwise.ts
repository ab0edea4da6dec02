import type { Node } from "../../src/engine/graph/node.js";
import { intScalar } from "../../src/engine/graph/ops/leaves.js";
import * as ops from "../../src/engine/graph/ops/elementwise.js";
import {
  awayFromZero,
  between,
  fixed,
  float,
  integers,
  matrixSizes,
  type Dims,
  type InputSpec,
  type OperationCase,
} from "./case.js";
import { mapElements, type PlainArray } from "./plain.js";

type BinaryOperation = (a: Node, b: Node) => Node;

/**
 * Pairs of shapes that broadcast: equal, scalar, row against column, fewer axes, size 1 on either
 * side.
 */
const broadcastPairs = ({ rows, columns }: Dims): [readonly Dims[string][], readonly Dims[string][]][] => [
  [
    [rows, columns],
    [rows, columns],
  ],
  [[rows, columns], []],
  [
    [rows, 1],
    [1, columns],
  ],
  [[columns], [3, rows, columns]],
  [
    [1, columns],
    [rows, columns],
  ],
  [
    [rows, columns],
    [rows, 1],
  ],
];
const pairIndices = [0, 1, 2, 3, 4, 5];

interface BinaryOptions {
  readonly differentiable?: boolean;
  readonly left?: (shape: readonly Dims[string][]) => InputSpec;
  readonly right?: (shape: readonly Dims[string][]) => InputSpec;
}

function binaryCase(
  build: BinaryOperation,
  f: (a: number, b: number) => number,
  { differentiable = true, left = float, right = float }: BinaryOptions = {},
): OperationCase {
  return {
    title: "every broadcast",
    sizes: matrixSizes,
    inputs: (dims) =>
      Object.fromEntries(
        broadcastPairs(dims).flatMap(([a, b], i) => [
          [`a${i}`, left(a)],
          [`b${i}`, right(b)],
        ]),
      ),
    build: (inputs) => pairIndices.map((i) => build(inputs[`a${i}`], inputs[`b${i}`])),
    reference: (inputs) => pairIndices.map((i) => mapElements(f, inputs[`a${i}`], inputs[`b${i}`])),
    differentiable: differentiable ? pairIndices.flatMap((i) => [`a${i}`, `b${i}`]) : [],
  };
}

function unaryCase(
  build: (x: Node) => Node,
  f: (x: number) => number,
  values: (shape: readonly Dims[string][]) => InputSpec = (shape) => float(shape, 2),
): OperationCase {
  return {
    title: "matrices and a scalar",
    sizes: matrixSizes,
    inputs: ({ rows, columns }) => ({ x: values([rows, columns]), y: values([]), z: values([3, 1, columns]) }),
    build: ({ x, y, z }) => [build(x), build(y), build(z)],
    reference: ({ x, y, z }) => [x, y, z].map((value) => mapElements(f, value)),
    differentiable: ["x", "y", "z"],
  };
}

/** Few values, so that some are equal. */
const smallIntegers = (shape: readonly Dims[string][]): InputSpec => integers(shape, "float32", -1, 1);
const booleans = (shape: readonly Dims[string][]): InputSpec => integers(shape, "bool", 0, 1);
const positiveFloats = (shape: readonly Dims[string][]): InputSpec => between(shape, 0.2, 3);

const sigmoid = (x: number): number => 1 / (1 + Math.exp(-x));

/** The error function by its power series, exact to float64's digits for |x| < 5 or so. */
function erf(x: number): number {
  let term = x;
  let total = x;
  for (let n = 1; n < 120; n++) {
    term *= (-x * x) / n;
    total += term / (2 * n + 1);
  }
  return (2 / Math.sqrt(Math.PI)) * total;
}

function geluTanh(x: number): number {
  return 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)));
}

const integerCase = (build: BinaryOperation, f: (a: number, b: number) => number): OperationCase => ({
  title: "integers",
  sizes: matrixSizes,
  inputs: ({ rows, columns }) => ({
    a: integers([rows, columns], "int32", -9, 9),
    b: integers([columns], "int32", 1, 9),
    c: integers([rows, 1], "int64", -9, 9),
    d: integers([rows, columns], "int64", 1, 9),
  }),
  build: ({ a, b, c, d }) => [build(a, b), build(c, d)],
  reference: ({ a, b, c, d }) => [mapElements(f, a, b), mapElements(f, c, d)],
  differentiable: [],
});

const asNumber = (f: (a: number, b: number) => boolean) => (a: number, b: number) => (f(a, b) ? 1 : 0);

const comparisonCases = (
  build: BinaryOperation,
  f: (a: number, b: number) => boolean,
): [OperationCase, OperationCase] => [
  binaryCase(build, asNumber(f), { differentiable: false, left: smallIntegers, right: smallIntegers }),
  {
    ...binaryCase(build, asNumber(f), {
      differentiable: false,
      left: (shape) => integers(shape, "int64", 0, 2),
      right: (shape) => integers(shape, "int64", 0, 2),
    }),
    title: "int64",
  },
];

const roundToEighth = (x: number): number => Math.round(x * 8) / 8;
const eighths = (shape: readonly Dims[string][]): InputSpec => ({
  ...float(shape),
  values: (random, n) => Array.from({ length: n }, () => roundToEighth(random.normal() * 3)),
});

const castCases: [OperationCase, OperationCase, OperationCase] = [
  {
    title: "through float16 and back, values that both hold",
    sizes: matrixSizes,
    inputs: ({ rows, columns }) => ({ x: eighths([rows, columns]) }),
    build: ({ x }) => ops.cast(ops.cast(x, "float16"), "float32"),
    reference: ({ x }) => x,
    differentiable: ["x"],
    // The gradient goes back through float16 too.
    tolerance: 1e-3,
  },
  {
    title: "from integers and bool",
    sizes: matrixSizes,
    inputs: ({ rows, columns }) => ({
      a: integers([rows, columns], "int32", -9, 9),
      b: integers([rows, columns], "int64", -9, 9),
      c: booleans([rows, columns]),
    }),
    build: (inputs) => ["a", "b", "c"].map((name) => ops.cast(inputs[name], "float32")),
    reference: ({ a, b, c }) => [a, b, c],
    differentiable: [],
  },
  {
    title: "to integers (towards zero) and bool",
    sizes: matrixSizes,
    inputs: ({ rows, columns }) => ({ x: eighths([rows, columns]) }),
    build: ({ x }) => [ops.cast(x, "int32"), ops.cast(x, "int64"), ops.cast(x, "bool")],
    reference: ({ x }) => [
      mapElements(Math.trunc, x),
      mapElements(Math.trunc, x),
      mapElements((v) => (v === 0 ? 0 : 1), x),
    ],
    differentiable: [],
  },
];

const selectElements = (condition: PlainArray, a: PlainArray, b: PlainArray): PlainArray =>
  mapElements((c, x, y) => (c ? x : y), condition, a, b);

export const elementwiseCases = {
  add: [binaryCase(ops.add, (a, b) => a + b), integerCase(ops.add, (a, b) => a + b)],
  sub: [binaryCase(ops.sub, (a, b) => a - b), integerCase(ops.sub, (a, b) => a - b)],
  mul: [binaryCase(ops.mul, (a, b) => a * b), integerCase(ops.mul, (a, b) => a * b)],
  div: [
    binaryCase(ops.div, (a, b) => a / b, { right: (shape) => between(shape, 0.5, 2) }),
    integerCase(ops.div, (a, b) => Math.trunc(a / b)),
  ],
  minimum: [binaryCase(ops.minimum, Math.min), integerCase(ops.minimum, Math.min)],
  maximum: [binaryCase(ops.maximum, Math.max), integerCase(ops.maximum, Math.max)],
  neg: [unaryCase(ops.neg, (x) => -x)],
  exp: [unaryCase(ops.exp, Math.exp, float)],
  log: [unaryCase(ops.log, Math.log, positiveFloats)],
  sqrt: [unaryCase(ops.sqrt, Math.sqrt, positiveFloats)],
  abs: [unaryCase(ops.abs, Math.abs, awayFromZero)],
  tanh: [unaryCase(ops.tanh, Math.tanh)],
  sigmoid: [unaryCase(ops.sigmoid, sigmoid)],
  erf: [unaryCase(ops.erf, erf, float)],
  silu: [unaryCase(ops.silu, (x) => x * sigmoid(x))],
  gelu: [unaryCase(ops.gelu, (x) => 0.5 * x * (1 + erf(x * Math.SQRT1_2)))],
  geluTanh: [unaryCase(ops.geluTanh, geluTanh)],
  less: comparisonCases(ops.less, (a, b) => a < b),
  lessEqual: comparisonCases(ops.lessEqual, (a, b) => a <= b),
  equal: comparisonCases(ops.equal, (a, b) => a === b),
  and: [
    binaryCase(
      ops.and,
      asNumber((a, b) => a + b === 2),
      { differentiable: false, left: booleans, right: booleans },
    ),
  ],
  or: [
    binaryCase(
      ops.or,
      asNumber((a, b) => a + b > 0),
      { differentiable: false, left: booleans, right: booleans },
    ),
  ],
  not: [{ ...unaryCase(ops.not, (x) => 1 - x, booleans), differentiable: [] }],
  where: [
    {
      title: "condition and values broadcast",
      sizes: matrixSizes,
      inputs: ({ rows, columns }) => ({
        column: booleans([rows, 1]),
        full: booleans([3, rows, columns]),
        a: float([rows, columns]),
        b: float([columns]),
        c: float([]),
      }),
      build: ({ column, full, a, b, c }) => [
        ops.where(column, a, b),
        ops.where(full, b, a),
        ops.where(column, c, b),
        ops.where(full, a, 0.5),
      ],
      reference: ({ column, full, a, b, c }) => [
        selectElements(column, a, b),
        selectElements(full, b, a),
        selectElements(column, c, b),
        selectElements(full, a, { shape: [], data: [0.5] }),
      ],
      differentiable: ["a", "b", "c"],
    },
    {
      title: "integers",
      sizes: matrixSizes,
      inputs: ({ rows, columns }) => ({ condition: booleans([rows, columns]), a: integers([columns], "int32", -9, 9) }),
      build: ({ condition, a }) => ops.where(condition, a, intScalar(-1)),
      reference: ({ condition, a }) => selectElements(condition, a, { shape: [], data: [-1] }),
      differentiable: [],
    },
  ],
  cast: castCases,
  stopGradient: [
    {
      title: "nothing flows",
      sizes: matrixSizes,
      inputs: ({ rows, columns }) => ({ x: float([rows, columns]) }),
      build: ({ x }) => ops.stopGradient(x),
      reference: ({ x }) => x,
      differentiable: [],
    },
    {
      title: "stops at one factor, which counts as a constant",
      sizes: matrixSizes,
      inputs: ({ rows, columns }) => ({ x: float([rows, columns]), held: fixed([], [1.5]) }),
      build: ({ x, held }) => ops.mul(ops.stopGradient(held), ops.mul(x, x)),
      reference: ({ x, held }) => mapElements((a, h) => h * a * a, x, held),
      differentiable: ["x"],
    },
  ],
  withGradientOf: [
    {
      title: "the value of one, the gradient of the sum",
      sizes: matrixSizes,
      inputs: ({ rows, columns }) => ({ x: float([rows, columns]), y: float([rows, columns]) }),
      build: ({ x, y }) => ops.withGradientOf(ops.mul(x, x), ops.mul(x, y)),
      reference: ({ x }) => mapElements((a) => a * a, x),
      gradientReference: ({ x, y }) => mapElements((a, b) => a * a + a * b, x, y),
      differentiable: ["x", "y"],
    },
  ],
} satisfies Record<string, readonly OperationCase[]>;
