import { mul } from "../../src/graph/ops/elementwise.js";
import { tokenLogProbs, type HeadAttributes } from "../../src/graph/ops/head.js";
import * as ops from "../../src/graph/ops/normalisation.js";
import { rotary } from "../../src/graph/ops/rotary.js";
import { between, float, ids, integers, matrixSizes, type OperationCase, type Sizes } from "./case.js";
import { alongLastAxis, at, plain, range, sum, type Plain } from "./plain.js";

const EPSILON = 1e-3;

const logSoftmaxOf = (vector: readonly number[]): number[] => {
  const top = Math.max(...vector);
  const total = Math.log(sum(vector.map((x) => Math.exp(x - top))));
  return vector.map((x) => x - top - total);
};

const softmaxed = (x: Plain): Plain => alongLastAxis((vector) => logSoftmaxOf(vector).map(Math.exp), x);
const logSoftmaxed = (x: Plain): Plain => alongLastAxis(logSoftmaxOf, x);

const meanOf = (vector: readonly number[]): number => sum(vector) / vector.length;
const inverse = (square: number): number => 1 / Math.sqrt(square + EPSILON);
const inverseRms = (vector: readonly number[]): number => inverse(meanOf(vector.map((x) => x * x)));
const inverseDeviation = (vector: readonly number[]): number =>
  inverse(meanOf(vector.map((x) => (x - meanOf(vector)) ** 2)));

/** One number for each vector of the last axis, which stays with size 1. */
const statistic = (x: Plain, f: (vector: number[]) => number): Plain => ({
  shape: [...x.shape.slice(0, -1), 1],
  data: alongLastAxis(f, x).data,
});

const rmsNormed = (x: Plain, weight: Plain): Plain =>
  alongLastAxis((vector) => vector.map((value, i) => value * inverseRms(vector) * weight.data[i]), x);

const layerNormed = (x: Plain, weight: Plain, bias: Plain): Plain =>
  alongLastAxis((vector) => {
    const centre = meanOf(vector);
    const scale = inverseDeviation(vector);
    return vector.map((value, i) => (value - centre) * scale * weight.data[i] + bias.data[i]);
  }, x);

const HEADS = 3;

/** Elements i and i + half of each head turn by the token's angle; the rest stay. */
function turned(x: Plain, cos: Plain, sin: Plain): Plain {
  const headDim = x.shape[1] / HEADS;
  const half = cos.shape[1];
  return plain(x.shape, ([token, column]) => {
    const head = Math.floor(column / headDim) * headDim;
    const i = column - head;
    const turn = (table: Plain) => at(table, [token, i % half]);
    if (i >= 2 * half) return at(x, [token, column]);
    if (i < half) return at(x, [token, column]) * turn(cos) - at(x, [token, column + half]) * turn(sin);
    return at(x, [token, column]) * turn(cos) + at(x, [token, column - half]) * turn(sin);
  });
}

const rotaryCase = (title: string, headDim: number, half: number): OperationCase => ({
  title,
  sizes: [{ tokens: 5 }, { tokens: 1 }, { tokens: 7 }, { tokens: 0 }],
  inputs: ({ tokens }) => ({
    x: float([tokens, HEADS * headDim]),
    cos: between([tokens, half], -1, 1),
    sin: between([tokens, half], -1, 1),
  }),
  build: ({ x, cos, sin }) => rotary(x, cos, sin, HEADS),
  reference: ({ x, cos, sin }) => turned(x, cos, sin),
  differentiable: ["x"],
});

export interface PlainHead {
  readonly hidden: readonly number[];
  readonly head: Plain;
  readonly bias?: Plain;
  readonly inverseTemperature: number;
  readonly softcap?: number;
  /** The tokens that can be chosen; all by default. */
  readonly among?: (token: number) => boolean;
}

/** All tokens' log-probabilities after one hidden state. */
export function plainLogProbs({ hidden, head, bias, inverseTemperature, softcap, among }: PlainHead): number[] {
  const logits = range(head.shape[0]).map((token) => {
    const logit = sum(hidden.map((value, i) => value * at(head, [token, i]))) + (bias?.data[token] ?? 0);
    return softcap === undefined ? logit : softcap * Math.tanh(logit / softcap);
  });
  const tempered = logits.map((logit) => logit * inverseTemperature);
  return logSoftmaxOf(tempered.map((logit, token) => (among === undefined || among(token) ? logit : -1e9)));
}

export const plainEntropy = (logProbs: readonly number[]): number => -sum(logProbs.map((p) => Math.exp(p) * p));

/** Whether each of seven tokens is in a set; the first two always are. */
const SETS = [
  [1, 1, 1, 1, 1, 1, 1],
  [1, 1, 0, 1, 1, 0, 0],
  [1, 1, 0, 0, 0, 0, 0],
];

function headCase(
  entropy: HeadAttributes["entropy"],
  softcap: number | undefined,
  withBias: boolean,
  withSets = false,
): OperationCase {
  const rowsOf = (inputs: Readonly<Record<string, Plain>>, f: (logProbs: number[], row: number) => number): Plain => ({
    shape: inputs.targets.shape,
    data: alongLastAxis((hidden, row) => {
      const { head, bias, setOf } = inputs;
      const inverseTemperature = inputs.inverseTemperature.data[0];
      const among = withSets ? (token: number) => SETS[setOf.data[row]][token] === 1 : undefined;
      return f(plainLogProbs({ hidden, head, bias, inverseTemperature, softcap, among }), row);
    }, inputs.hidden).data,
  });
  const chosen = (inputs: Readonly<Record<string, Plain>>) =>
    rowsOf(inputs, (logProbs, row) => logProbs[inputs.targets.data[row]]);
  return {
    title: `entropy ${entropy}${softcap === undefined ? "" : ", softcap"}${withBias ? ", bias" : ""}${withSets ? ", sets" : ""}`,
    sizes: matrixSizes,
    inputs: ({ rows }) => ({
      hidden: float([rows, 5]),
      head: float([7, 5]),
      targets: ids([rows], withSets ? 2 : 7, entropy === "none" ? "int32" : "int64"),
      inverseTemperature: between([], 0.5, 2),
      ...(withBias ? { bias: float([7]) } : {}),
      ...(withSets
        ? { sets: { ...integers([3, 7], "bool", 0, 1), values: () => SETS.flat() }, setOf: ids([rows], 3) }
        : {}),
    }),
    build: ({ hidden, head, targets, inverseTemperature, bias, sets, setOf }) => {
      const among = withSets ? { sets, setOf } : undefined;
      const result = tokenLogProbs({ hidden, head, targets, inverseTemperature, bias, softcap, among, entropy });
      return result.entropy === undefined ? result.logProbs : [result.logProbs, result.entropy];
    },
    reference: (inputs) =>
      entropy === "none" ? chosen(inputs) : [chosen(inputs), rowsOf(inputs, (logProbs) => plainEntropy(logProbs))],
    // With "value", the entropy is a number to look at: as a constant in the loss.
    differentiated: (inputs) =>
      entropy === "gradient" ? [chosen(inputs), rowsOf(inputs, plainEntropy)] : chosen(inputs),
    differentiable: ["hidden"],
  };
}

const normSizes: readonly Sizes[] = matrixSizes;

export const normalisationCases = {
  softmax: [
    {
      title: "last axis, large values too",
      sizes: matrixSizes,
      inputs: ({ rows, columns }) => ({
        x: float([rows, columns]),
        y: float([3, rows, columns], 100),
        z: float([columns]),
      }),
      build: ({ x, y, z }) => [ops.softmax(x), ops.softmax(y), ops.softmax(z)],
      reference: ({ x, y, z }) => [x, y, z].map(softmaxed),
      differentiable: ["x", "y", "z"],
    },
  ],
  logSoftmax: [
    {
      title: "last axis, large values too",
      sizes: matrixSizes,
      inputs: ({ rows, columns }) => ({
        x: float([rows, columns]),
        y: float([3, rows, columns], 100),
        z: float([columns]),
      }),
      build: ({ x, y, z }) => [ops.logSoftmax(x), ops.logSoftmax(y), ops.logSoftmax(z)],
      reference: ({ x, y, z }) => [x, y, z].map(logSoftmaxed),
      differentiable: ["x", "y", "z"],
    },
  ],
  rmsNorm: [
    {
      title: "matrices and more axes",
      sizes: normSizes,
      inputs: ({ rows, columns }) => ({
        x: float([rows, columns]),
        y: float([3, rows, columns]),
        weight: float([columns]),
      }),
      build: ({ x, y, weight }) => [ops.rmsNorm(x, weight, EPSILON), ops.rmsNorm(y, weight, EPSILON)],
      reference: ({ x, y, weight }) => [rmsNormed(x, weight), rmsNormed(y, weight)],
      differentiable: ["x", "y", "weight"],
    },
  ],
  layerNorm: [
    {
      title: "matrices and more axes",
      sizes: normSizes,
      inputs: ({ rows, columns }) => ({
        x: float([rows, columns]),
        y: float([3, rows, columns]),
        weight: float([columns]),
        bias: float([columns]),
      }),
      build: ({ x, y, weight, bias }) => [
        ops.layerNorm(x, weight, bias, EPSILON),
        ops.layerNorm(y, weight, bias, EPSILON),
      ],
      reference: ({ x, y, weight, bias }) => [layerNormed(x, weight, bias), layerNormed(y, weight, bias)],
      differentiable: ["x", "y", "weight", "bias"],
    },
  ],
  output: [
    {
      title: "inverse root mean square, mean and inverse deviation beside the normal values",
      sizes: normSizes,
      inputs: ({ rows, columns }) => ({ x: float([rows, columns]), weight: float([columns]), bias: float([columns]) }),
      build: ({ x, weight, bias }) => {
        const rms = ops.rmsNorm(x, weight, EPSILON);
        const layer = ops.layerNorm(x, weight, bias, EPSILON);
        return [rms, ops.output(rms, 1), layer, ops.output(layer, 1), ops.output(layer, 2)];
      },
      reference: ({ x, weight, bias }) => [
        rmsNormed(x, weight),
        statistic(x, inverseRms),
        layerNormed(x, weight, bias),
        statistic(x, meanOf),
        statistic(x, inverseDeviation),
      ],
      differentiable: ["x", "weight", "bias"],
    },
    {
      title: "a loss that sees only a statistic",
      sizes: normSizes,
      inputs: ({ rows, columns }) => ({
        x: float([rows, columns]),
        y: float([rows, columns]),
        weight: float([columns]),
      }),
      build: ({ x, y, weight }) => [
        ops.output(ops.rmsNorm(x, weight, EPSILON), 1),
        mul(ops.output(ops.layerNorm(y, weight, weight, EPSILON), 2), 2),
      ],
      reference: ({ x, y }) => [statistic(x, inverseRms), statistic(y, (vector) => 2 * inverseDeviation(vector))],
      differentiable: ["x", "y", "weight"],
    },
  ],
  rotary: [rotaryCase("whole heads", 6, 3), rotaryCase("part of each head", 10, 3), rotaryCase("pairs", 2, 1)],
  tokenLogProbs: [
    headCase("none", undefined, false),
    headCase("value", 3, true),
    headCase("gradient", undefined, true),
    headCase("gradient", 2, false),
    headCase("none", 3, false),
    headCase("none", undefined, false, true),
    headCase("value", undefined, true, true),
    headCase("gradient", 2, true, true),
  ],
} satisfies Record<string, readonly OperationCase[]>;
