import { afterAll, describe, expect, it } from "vitest";
import { differences, toTensor } from "../../../test/operations/check.js";
import { plainEntropy, plainLogProbs } from "../../../test/operations/normalisation.js";
import { range, type Plain } from "../../../test/operations/plain.js";
import { Runtime } from "../../runtime/runtime.js";
import { RandomStream } from "../../tensor/random.js";
import { symbol } from "../dim.js";
import { gradient } from "../gradient.js";
import { compile } from "../writer.js";
import { input } from "./constant.js";
import { add, mul } from "./elementwise.js";
import { tokenLogProbs } from "./head.js";
import { reduceSum } from "./reduce.js";

const WIDTH = 3;
const VOCABULARY = 11;
const SOFTCAP = 2;
const STEP = 1e-4;

const runtime = new Runtime({ device: "cpu", threads: 1 });
afterAll(() => runtime.close());

function normal(random: RandomStream, shape: readonly number[]): Plain {
  const data = range(shape.reduce((product, size) => product * size, 1)).map(() => Math.fround(random.normal()));
  return { shape, data };
}

/** Rows are independent, so each row's gradient is taken from that row alone. */
function expectedRow(
  { hidden, head, bias, inverseTemperature }: Readonly<Record<string, Plain>>,
  row: number,
  target: number,
  weights: readonly [number, number],
) {
  const at = (vector: readonly number[]) => {
    const logProbs = plainLogProbs({
      hidden: vector,
      head,
      bias,
      inverseTemperature: inverseTemperature.data[0],
      softcap: SOFTCAP,
    });
    return { logProb: logProbs[target], entropy: plainEntropy(logProbs) };
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
  it("takes any number of rows: none, one, a full chunk, one more, several chunks with a remainder", async () => {
    const rows = symbol("rows");
    const hidden = input("hidden", "float32", [rows, WIDTH]);
    const result = tokenLogProbs({
      hidden,
      head: input("head", "float32", [VOCABULARY, WIDTH]),
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
      compile({ logProbs: result.logProbs, entropy: result.entropy!, slopes }),
    );

    for (const count of [0, 1, 255, 256, 257, 511, 512, 513, 770]) {
      const random = new RandomStream(count);
      const values = {
        hidden: normal(random, [count, WIDTH]),
        head: normal(random, [VOCABULARY, WIDTH]),
        bias: normal(random, [VOCABULARY]),
        inverseTemperature: { shape: [], data: [1.25] },
        logProbWeights: normal(random, [count]),
        entropyWeights: normal(random, [count]),
      };
      const targets = range(count).map(() => Math.floor(random.random() * VOCABULARY));
      const feeds = Object.fromEntries(
        Object.entries(values).map(([name, value]) => [name, toTensor("float32", value)]),
      );
      const results = await session.run({ ...feeds, targets: toTensor("int32", { shape: [count], data: targets }) });

      const expected = range(count).map((row) =>
        expectedRow(values, row, targets[row], [values.logProbWeights.data[row], values.entropyWeights.data[row]]),
      );
      const perRow = (data: number[]): Plain => ({ shape: [count], data });
      expect(differences(results.logProbs, perRow(expected.map(({ logProb }) => logProb)))).toEqual([]);
      expect(differences(results.entropy, perRow(expected.map(({ entropy }) => entropy)))).toEqual([]);
      const wanted = { shape: [count, WIDTH], data: expected.flatMap((row) => row.slopes) };
      expect(differences(results.slopes, wanted)).toEqual([]);
    }
    await session.release();
  });
});
