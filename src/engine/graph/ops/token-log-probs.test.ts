import { afterAll, describe, expect, it } from "vitest";
import { findDifference, toTensor } from "../../check-operation.js";
import { referenceEntropy, referenceLogProbs } from "../../../../test/operations/norm.js";
import { range, type PlainArray } from "../../../../test/operations/plain.js";
import { Runtime } from "../../runtime/runtime.js";
import { RandomStream } from "../../../core/random/random-stream.js";
import { dim } from "../dim.js";
import { gradient } from "../gradient.js";
import { compile } from "../compile.js";
import { input } from "./leaves.js";
import { add, mul } from "./elementwise.js";
import { tokenLogProbs } from "./token-log-probs.js";
import { reduceSum } from "./reduce.js";

const WIDTH = 3;
const VOCABULARY = 11;
const SOFTCAP = 2;
const STEP = 1e-4;

const runtime = new Runtime({ device: "cpu", threads: 1 });
afterAll(() => runtime.close());

function normal(random: RandomStream, shape: readonly number[]): PlainArray {
  const data = range(shape.reduce((product, size) => product * size, 1)).map(() => Math.fround(random.normal()));
  return { shape, data };
}

/** Rows are independent, so each row's gradient is taken from that row alone. */
function expectedRow(
  { hidden, head, bias, inverseTemperature }: Readonly<Record<string, PlainArray>>,
  row: number,
  target: number,
  weights: readonly [number, number],
) {
  const at = (vector: readonly number[]) => {
    const logProbs = referenceLogProbs({
      hidden: vector,
      head,
      bias,
      inverseTemperature: inverseTemperature.data[0],
      softcap: SOFTCAP,
    });
    return { logProb: logProbs[target], maxLogProb: Math.max(...logProbs), entropy: referenceEntropy(logProbs) };
  };
  const vector = hidden.data.slice(row * WIDTH, (row + 1) * WIDTH);
  const loss = (moved: readonly number[]) => weights[0] * at(moved).logProb + weights[1] * at(moved).entropy;
  const slopes = vector.map((x, i) => {
    const [above, below] = [x + STEP, x - STEP].map((value) => loss(vector.with(i, value)));
    return (above - below) / (2 * STEP);
  });
  return { ...at(vector), slopes };
}

describe("tokenLogProbs", () => {
  it.each([
    ["values", undefined],
    ["codes in one tile", 2 ** 20],
    ["codes in two tiles, of which the last is smaller", 72],
    ["codes in three tiles", 48],
    ["codes in tiles of one row", 12],
  ])("accepts any number of rows with an output matrix of %s", async (_name, tileBytes) => {
    const isCoded = tileBytes !== undefined;
    const rows = dim("rows");
    const hidden = input("hidden", "float32", [rows, WIDTH]);
    const result = tokenLogProbs({
      hidden,
      head: input("head", isCoded ? "int8" : "float32", [VOCABULARY, WIDTH]),
      scales: isCoded ? input("scales", "float32", [VOCABULARY]) : undefined,
      tileBytes,
      bias: input("bias", "float32", [VOCABULARY]),
      targets: input("targets", "int32", [rows]),
      inverseTemperature: input("inverseTemperature", "float32", []),
      softcap: SOFTCAP,
      entropy: "gradient",
    });
    const weighted = (name: string, value: typeof hidden) => reduceSum(mul(input(name, "float32", [rows]), value));
    const loss = add(weighted("logProbWeights", result.logProbs), weighted("entropyWeights", result.entropy!));
    const [slopes] = gradient(loss, [hidden]);
    const session = await runtime.createSession(
      compile({ logProbs: result.logProbs, maxLogProbs: result.maxLogProbs, entropy: result.entropy!, slopes }),
    );

    // None, one, a full chunk, one more, several chunks with a remainder.
    for (const count of [0, 1, 255, 256, 257, 511, 512, 513, 770]) {
      const random = new RandomStream(count);
      const codes = range(VOCABULARY * WIDTH).map(() => random.integers(-127, 128));
      const scales = range(VOCABULARY).map((row) => Math.fround(0.002 * (row + 1)));
      const widened = codes.map((code, i) => Math.fround(code * scales[Math.floor(i / WIDTH)]));
      const matrix = [VOCABULARY, WIDTH];
      const values = {
        hidden: normal(random, [count, WIDTH]),
        head: isCoded ? { shape: matrix, data: widened } : normal(random, matrix),
        bias: normal(random, [VOCABULARY]),
        inverseTemperature: { shape: [], data: [1.25] },
        logProbWeights: normal(random, [count]),
        entropyWeights: normal(random, [count]),
      };
      const targets = range(count).map(() => Math.floor(random.random() * VOCABULARY));
      const feeds = Object.fromEntries(
        Object.entries(values).map(([name, value]) => [name, toTensor("float32", value)]),
      );
      if (isCoded) {
        feeds.head = toTensor("int8", { shape: matrix, data: codes });
        feeds.scales = toTensor("float32", { shape: [VOCABULARY], data: scales });
      }
      const results = await session.run({ ...feeds, targets: toTensor("int32", { shape: [count], data: targets }) });

      const expected = range(count).map((row) =>
        expectedRow(values, row, targets[row], [values.logProbWeights.data[row], values.entropyWeights.data[row]]),
      );
      const perRow = (data: number[]): PlainArray => ({ shape: [count], data });
      expect(findDifference(results.logProbs, perRow(expected.map(({ logProb }) => logProb)))).toBeUndefined();
      expect(findDifference(results.maxLogProbs, perRow(expected.map(({ maxLogProb }) => maxLogProb)))).toBeUndefined();
      expect(findDifference(results.entropy, perRow(expected.map(({ entropy }) => entropy)))).toBeUndefined();
      const wanted = { shape: [count, WIDTH], data: expected.flatMap((row) => row.slopes) };
      expect(findDifference(results.slopes, wanted)).toBeUndefined();
    }
    await session.release();
  });
});
