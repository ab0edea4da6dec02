import type { Node } from "../../src/graph/node.js";
import { intScalar } from "../../src/graph/ops/constant.js";
import * as ops from "../../src/graph/ops/elementwise.js";
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
import { elementwise, type Plain } from "./plain.js";

type Binary = (a: Node, b: Node) => Node;

/** Pairs of shapes that broadcast: equal, scalar, row against column, fewer axes, size 1 on either side. */
const pairs = ({ rows, columns }: Dims): [readonly Dims[string][], readonly Dims[string][]][] => [
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
const pairNumbers = [0, 1, 2, 3, 4, 5];

interface BinaryOptions {
  readonly differentiable?: boolean;
  readonly left?: (shape: readonly Dims[string][]) => InputSpec;
  readonly right?: (shape: readonly Dims[string][]) => InputSpec;
}

function binary(
  build: Binary,
  f: (a: number, b: number) => number,
  { differentiable = true, left = float, right = float }: BinaryOptions = {},
): OperationCase {
  return {
    title: "every broadcast",
    sizes: matrixSizes,
    inputs: (dims) =>
      Object.fromEntries(
        pairs(dims).flatMap(([a, b], i) => [
          [`a${i}`, left(a)],
          [`b${i}`, right(b)],
        ]),
      ),
    build: (inputs) => pairNumbers.map((i) => build(inputs[`a${i}`], inputs[`b${i}`])),
    reference: (inputs) => pairNumbers.map((i) => elementwise(f, inputs[`a${i}`], inputs[`b${i}`])),
    differentiable: differentiable ? pairNumbers.flatMap((i) => [`a${i}`, `b${i}`]) : [],
  };
}

function unary(
  build: (x: Node) => Node,
  f: (x: number) => number,
  values: (shape: readonly Dims[string][]) => InputSpec = (shape) => float(shape, 2),
): OperationCase {
  return {
    title: "matrices and a scalar",
    sizes: matrixSizes,
    inputs: ({ rows, columns }) => ({ x: values([rows, columns]), y: values([]), z: values([3, 1, columns]) }),
    build: ({ x, y, z }) => [build(x), build(y), build(z)],
    reference: ({ x, y, z }) => [x, y, z].map((value) => elementwise(f, value)),
    differentiable: ["x", "y", "z"],
  };
}

/** Few values, so that some are equal. */
const small = (shape: readonly Dims[string][]): InputSpec => integers(shape, "float32", -1, 1);
const bits = (shape: readonly Dims[string][]): InputSpec => integers(shape, "bool", 0, 1);
const positive = (shape: readonly Dims[string][]): InputSpec => between(shape, 0.2, 3);

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

const integerArithmetic = (build: Binary, f: (a: number, b: number) => number): OperationCase => ({
  title: "integers",
  sizes: matrixSizes,
  inputs: ({ rows, columns }) => ({
    a: integers([rows, columns], "int32", -9, 9),
    b: integers([columns], "int32", 1, 9),
    c: integers([rows, 1], "int64", -9, 9),
    d: integers([rows, columns], "int64", 1, 9),
  }),
  build: ({ a, b, c, d }) => [build(a, b), build(c, d)],
  reference: ({ a, b, c, d }) => [elementwise(f, a, b), elementwise(f, c, d)],
  differentiable: [],
});

const truth = (f: (a: number, b: number) => boolean) => (a: number, b: number) => (f(a, b) ? 1 : 0);

const comparison = (build: Binary, f: (a: number, b: number) => boolean): [OperationCase, OperationCase] => [
  binary(build, truth(f), { differentiable: false, left: small, right: small }),
  {
    ...binary(build, truth(f), {
      differentiable: false,
      left: (shape) => integers(shape, "int64", 0, 2),
      right: (shape) => integers(shape, "int64", 0, 2),
    }),
    title: "int64",
  },
];

const rounded = (x: number): number => Math.round(x * 8) / 8;
const eighths = (shape: readonly Dims[string][]): InputSpec => ({
  ...float(shape),
  values: (random, n) => Array.from({ length: n }, () => rounded(random.normal() * 3)),
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
      c: bits([rows, columns]),
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
      elementwise(Math.trunc, x),
      elementwise(Math.trunc, x),
      elementwise((v) => (v === 0 ? 0 : 1), x),
    ],
    differentiable: [],
  },
];

const choose = (condition: Plain, a: Plain, b: Plain): Plain => elementwise((c, x, y) => (c ? x : y), condition, a, b);

export const elementwiseCases = {
  add: [binary(ops.add, (a, b) => a + b), integerArithmetic(ops.add, (a, b) => a + b)],
  sub: [binary(ops.sub, (a, b) => a - b), integerArithmetic(ops.sub, (a, b) => a - b)],
  mul: [binary(ops.mul, (a, b) => a * b), integerArithmetic(ops.mul, (a, b) => a * b)],
  div: [
    binary(ops.div, (a, b) => a / b, { right: (shape) => between(shape, 0.5, 2) }),
    integerArithmetic(ops.div, (a, b) => Math.trunc(a / b)),
  ],
  minimum: [binary(ops.minimum, Math.min), integerArithmetic(ops.minimum, Math.min)],
  maximum: [binary(ops.maximum, Math.max), integerArithmetic(ops.maximum, Math.max)],
  neg: [unary(ops.neg, (x) => -x)],
  exp: [unary(ops.exp, Math.exp, float)],
  log: [unary(ops.log, Math.log, positive)],
  sqrt: [unary(ops.sqrt, Math.sqrt, positive)],
  abs: [unary(ops.abs, Math.abs, awayFromZero)],
  tanh: [unary(ops.tanh, Math.tanh)],
  sigmoid: [unary(ops.sigmoid, sigmoid)],
  erf: [unary(ops.erf, erf, float)],
  silu: [unary(ops.silu, (x) => x * sigmoid(x))],
  gelu: [unary(ops.gelu, (x) => 0.5 * x * (1 + erf(x * Math.SQRT1_2)))],
  geluTanh: [unary(ops.geluTanh, geluTanh)],
  less: comparison(ops.less, (a, b) => a < b),
  lessEqual: comparison(ops.lessEqual, (a, b) => a <= b),
  equal: comparison(ops.equal, (a, b) => a === b),
  and: [
    binary(
      ops.and,
      truth((a, b) => a + b === 2),
      { differentiable: false, left: bits, right: bits },
    ),
  ],
  or: [
    binary(
      ops.or,
      truth((a, b) => a + b > 0),
      { differentiable: false, left: bits, right: bits },
    ),
  ],
  not: [{ ...unary(ops.not, (x) => 1 - x, bits), differentiable: [] }],
  where: [
    {
      title: "condition and values broadcast",
      sizes: matrixSizes,
      inputs: ({ rows, columns }) => ({
        column: bits([rows, 1]),
        full: bits([3, rows, columns]),
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
        choose(column, a, b),
        choose(full, b, a),
        choose(column, c, b),
        choose(full, a, { shape: [], data: [0.5] }),
      ],
      differentiable: ["a", "b", "c"],
    },
    {
      title: "integers",
      sizes: matrixSizes,
      inputs: ({ rows, columns }) => ({ condition: bits([rows, columns]), a: integers([columns], "int32", -9, 9) }),
      build: ({ condition, a }) => ops.where(condition, a, intScalar(-1)),
      reference: ({ condition, a }) => choose(condition, a, { shape: [], data: [-1] }),
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
      title: "flows beside it: the factor counts as a constant",
      sizes: matrixSizes,
      inputs: ({ rows, columns }) => ({ x: float([rows, columns]), held: fixed([], [1.5]) }),
      build: ({ x, held }) => ops.mul(ops.stopGradient(held), ops.mul(x, x)),
      reference: ({ x, held }) => elementwise((a, h) => h * a * a, x, held),
      differentiable: ["x"],
    },
  ],
  withGradientOf: [
    {
      title: "the value of one, the gradient of the sum",
      sizes: matrixSizes,
      inputs: ({ rows, columns }) => ({ x: float([rows, columns]), y: float([rows, columns]) }),
      build: ({ x, y }) => ops.withGradientOf(ops.mul(x, x), ops.mul(x, y)),
      reference: ({ x }) => elementwise((a) => a * a, x),
      differentiated: ({ x, y }) => elementwise((a, b) => a * a + a * b, x, y),
      differentiable: ["x", "y"],
    },
  ],
} satisfies Record<string, readonly OperationCase[]>;
