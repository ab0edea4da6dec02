import { mul } from "../../src/engine/graph/ops/elementwise.js";
import { tokenLogProbs, type LmHeadAttributes } from "../../src/engine/graph/ops/token-log-probs.js";
import * as ops from "../../src/engine/graph/ops/norm.js";
import { output } from "../../src/engine/graph/ops/layout.js";
import { rotary } from "../../src/engine/graph/ops/rotary.js";
import { between, float, ids, integers, matrixSizes, type OperationCase, type Sizes } from "./case.js";
import { mapLastAxis, elementAt, buildArray, range, sum, type PlainArray } from "./plain.js";

const EPSILON = 1e-3;

const logSoftmax = (vector: readonly number[]): number[] => {
  const max = Math.max(...vector);
  const total = Math.log(sum(vector.map((x) => Math.exp(x - max))));
  return vector.map((x) => x - max - total);
};

const softmaxArray = (x: PlainArray): PlainArray => mapLastAxis((vector) => logSoftmax(vector).map(Math.exp), x);
const logSoftmaxArray = (x: PlainArray): PlainArray => mapLastAxis(logSoftmax, x);

const mean = (vector: readonly number[]): number => sum(vector) / vector.length;
const inverseRoot = (square: number): number => 1 / Math.sqrt(square + EPSILON);
const inverseRms = (vector: readonly number[]): number => inverseRoot(mean(vector.map((x) => x * x)));
const inverseDeviation = (vector: readonly number[]): number =>
  inverseRoot(mean(vector.map((x) => (x - mean(vector)) ** 2)));

/** One number for each vector of the last axis, which stays with size 1. */
const reduceLastAxis = (x: PlainArray, f: (vector: number[]) => number): PlainArray => ({
  shape: [...x.shape.slice(0, -1), 1],
  data: mapLastAxis(f, x).data,
});

const rmsNorm = (x: PlainArray, weight: PlainArray): PlainArray =>
  mapLastAxis((vector) => vector.map((value, i) => value * inverseRms(vector) * weight.data[i]), x);

const layerNorm = (x: PlainArray, weight: PlainArray, bias: PlainArray): PlainArray =>
  mapLastAxis((vector) => {
    const center = mean(vector);
    const scale = inverseDeviation(vector);
    return vector.map((value, i) => (value - center) * scale * weight.data[i] + bias.data[i]);
  }, x);

const HEADS = 3;

/** Elements i and i + half of each head turn by the token's angle; the rest stay. */
function rotate(x: PlainArray, cos: PlainArray, sin: PlainArray): PlainArray {
  const headDim = x.shape[1] / HEADS;
  const half = cos.shape[1];
  return buildArray(x.shape, ([token, column]) => {
    const head = Math.floor(column / headDim) * headDim;
    const i = column - head;
    const angleOf = (table: PlainArray) => elementAt(table, [token, i % half]);
    if (i >= 2 * half) return elementAt(x, [token, column]);
    if (i < half)
      return elementAt(x, [token, column]) * angleOf(cos) - elementAt(x, [token, column + half]) * angleOf(sin);
    return elementAt(x, [token, column]) * angleOf(cos) + elementAt(x, [token, column - half]) * angleOf(sin);
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
  reference: ({ x, cos, sin }) => rotate(x, cos, sin),
  differentiable: ["x"],
});

export interface ReferenceLmHead {
  readonly hidden: readonly number[];
  readonly head: PlainArray;
  readonly bias?: PlainArray;
  readonly inverseTemperature: number;
  readonly softcap?: number;
  /** The tokens that can be chosen; all by default. */
  readonly isAllowed?: (token: number) => boolean;
}

/** All tokens' log-probabilities after one hidden state. */
export function referenceLogProbs({
  hidden,
  head,
  bias,
  inverseTemperature,
  softcap,
  isAllowed,
}: ReferenceLmHead): number[] {
  const logits = range(head.shape[0]).map((token) => {
    const logit = sum(hidden.map((value, i) => value * elementAt(head, [token, i]))) + (bias?.data[token] ?? 0);
    return softcap === undefined ? logit : softcap * Math.tanh(logit / softcap);
  });
  const tempered = logits.map((logit) => logit * inverseTemperature);
  return logSoftmax(tempered.map((logit, token) => (isAllowed === undefined || isAllowed(token) ? logit : -1e9)));
}

export const referenceEntropy = (logProbs: readonly number[]): number => -sum(logProbs.map((p) => Math.exp(p) * p));

/** Whether each of seven tokens is in a set; the first two always are. */
const ALLOWED_SETS = [
  [1, 1, 1, 1, 1, 1, 1],
  [1, 1, 0, 1, 1, 0, 0],
  [1, 1, 0, 0, 0, 0, 0],
];

function lmHeadCase(
  entropy: LmHeadAttributes["entropy"],
  softcap: number | undefined,
  withBias: boolean,
  withSets = false,
  vocabulary = 7,
): OperationCase {
  const mapRows = (
    inputs: Readonly<Record<string, PlainArray>>,
    f: (logProbs: number[], row: number) => number,
  ): PlainArray => ({
    shape: inputs.targets.shape,
    data: mapLastAxis((hidden, row) => {
      const { head, bias, setIndices } = inputs;
      const inverseTemperature = inputs.inverseTemperature.data[0];
      const isAllowed = withSets ? (token: number) => ALLOWED_SETS[setIndices.data[row]][token] === 1 : undefined;
      return f(referenceLogProbs({ hidden, head, bias, inverseTemperature, softcap, isAllowed }), row);
    }, inputs.hidden).data,
  });
  const targetLogProbs = (inputs: Readonly<Record<string, PlainArray>>) =>
    mapRows(inputs, (logProbs, row) => logProbs[inputs.targets.data[row]]);
  return {
    title: `entropy ${entropy}${softcap === undefined ? "" : ", softcap"}${withBias ? ", bias" : ""}${withSets ? ", sets" : ""}`,
    sizes: matrixSizes,
    inputs: ({ rows }) => ({
      hidden: float([rows, 5]),
      head: float([vocabulary, 5]),
      targets: ids([rows], withSets ? 2 : vocabulary, entropy === "none" ? "int32" : "int64"),
      inverseTemperature: between([], 0.5, 2),
      ...(withBias ? { bias: float([vocabulary]) } : {}),
      ...(withSets
        ? { sets: { ...integers([3, 7], "bool", 0, 1), values: () => ALLOWED_SETS.flat() }, setIndices: ids([rows], 3) }
        : {}),
    }),
    build: ({ hidden, head, targets, inverseTemperature, bias, sets, setIndices }) => {
      const allowedTokens = withSets ? { sets, setIndices } : undefined;
      const result = tokenLogProbs({
        hidden,
        head,
        targets,
        inverseTemperature,
        bias,
        softcap,
        allowedTokens,
        entropy,
      });
      return result.entropy === undefined ? result.logProbs : [result.logProbs, result.entropy];
    },
    reference: (inputs) =>
      entropy === "none"
        ? targetLogProbs(inputs)
        : [targetLogProbs(inputs), mapRows(inputs, (logProbs) => referenceEntropy(logProbs))],
    // With "value", the entropy is a number to look at: as a constant in the loss.
    gradientReference: (inputs) =>
      entropy === "gradient" ? [targetLogProbs(inputs), mapRows(inputs, referenceEntropy)] : targetLogProbs(inputs),
    differentiable: ["hidden"],
  };
}

/** A vocabulary that a GPU adds up in parts, for rows that it computes in narrow tiles. */
export const largeVocabularyCase: OperationCase = {
  ...lmHeadCase("none", undefined, false, false, 2048),
  sizes: [{ rows: 9, columns: 1 }],
};

const normSizes: readonly Sizes[] = matrixSizes;

export const normCases = {
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
      reference: ({ x, y, z }) => [x, y, z].map(softmaxArray),
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
      reference: ({ x, y, z }) => [x, y, z].map(logSoftmaxArray),
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
      reference: ({ x, y, weight }) => [rmsNorm(x, weight), rmsNorm(y, weight)],
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
      reference: ({ x, y, weight, bias }) => [layerNorm(x, weight, bias), layerNorm(y, weight, bias)],
      differentiable: ["x", "y", "weight", "bias"],
    },
  ],
  output: [
    {
      title: "inverse root mean square, mean and inverse deviation with normal values",
      sizes: normSizes,
      inputs: ({ rows, columns }) => ({ x: float([rows, columns]), weight: float([columns]), bias: float([columns]) }),
      build: ({ x, weight, bias }) => {
        const rms = ops.rmsNorm(x, weight, EPSILON);
        const layer = ops.layerNorm(x, weight, bias, EPSILON);
        return [rms, output(rms, 1), layer, output(layer, 1), output(layer, 2)];
      },
      reference: ({ x, weight, bias }) => [
        rmsNorm(x, weight),
        reduceLastAxis(x, inverseRms),
        layerNorm(x, weight, bias),
        reduceLastAxis(x, mean),
        reduceLastAxis(x, inverseDeviation),
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
        output(ops.rmsNorm(x, weight, EPSILON), 1),
        mul(output(ops.layerNorm(y, weight, weight, EPSILON), 2), 2),
      ],
      reference: ({ x, y }) => [
        reduceLastAxis(x, inverseRms),
        reduceLastAxis(y, (vector) => 2 * inverseDeviation(vector)),
      ],
      differentiable: ["x", "y", "weight"],
    },
  ],
  rotary: [rotaryCase("whole heads", 6, 3), rotaryCase("part of each head", 10, 3), rotaryCase("pairs", 2, 1)],
  tokenLogProbs: [
    lmHeadCase("none", undefined, false),
    lmHeadCase("value", 3, true),
    lmHeadCase("gradient", undefined, true),
    lmHeadCase("gradient", 2, false),
    lmHeadCase("none", 3, false),
    lmHeadCase("none", undefined, false, true),
    lmHeadCase("value", undefined, true, true),
    lmHeadCase("gradient", 2, true, true),
  ],
} satisfies Record<string, readonly OperationCase[]>;
