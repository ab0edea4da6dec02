import { afterAll, describe, expect, it } from "vitest";
import { Runtime } from "../../runtime/runtime.js";
import { float32 } from "../../tensor/tensor.js";
import { abs, compile, gradient, input, maximum, minimum, mul, reduceMax, reduceSum, type Node } from "../index.js";

const runtime = new Runtime({ device: "cpu", threads: 1 });
afterAll(() => runtime.close());

const x = input("x", "float32", [4]);
const y = input("y", "float32", [4]);
const weights = input("weights", "float32", [4]);

/** d (weights . value) / d x and d y, at x = [1, 2, 0, 3], y = [1, 3, 0, 2]. */
async function slopes(value: Node, parameters: readonly Node[]): Promise<number[][]> {
  const results = gradient(reduceSum(mul(value, weights)), parameters);
  const session = await runtime.createSession(
    compile(Object.fromEntries(results.map((node, i) => [`slope${i}`, node]))),
  );
  const feeds = { x: float32([1, 2, 0, 3]), y: float32([1, 3, 0, 2]), weights: float32([10, 20, 30, 40]) };
  const values = await session.run(feeds);
  await session.release();
  return results.map((_, i) => [...values[`slope${i}`].data]);
}

describe("subgradients", () => {
  it("send the gradient of a tie to the first input of maximum and minimum", async () => {
    expect(await slopes(maximum(x, y), [x, y])).toEqual([
      [10, 0, 30, 40],
      [0, 20, 0, 0],
    ]);
    expect(await slopes(minimum(x, y), [x, y])).toEqual([
      [10, 20, 30, 0],
      [0, 0, 0, 40],
    ]);
  });

  it("share the gradient of a reduced maximum between ties", async () => {
    const top = reduceMax(mul(y, mul(y, input("x", "float32", [4]))), [0], true);
    // y y x = [1, 18, 0, 12]: no tie; min(x, 1) = [1, 1, 0, 1]: three.
    expect(await slopes(top, [x])).toEqual([[0, 900, 0, 0]]);
    const capped = await slopes(reduceMax(minimum(x, 1), [0], true), [x]);
    expect(capped[0].map((slope) => Math.round(slope * 1000) / 1000)).toEqual([33.333, 0, 0, 0]);
  });

  it("take 1 as the slope of the absolute value at 0", async () => {
    expect(await slopes(abs(x), [x])).toEqual([[10, 20, 30, 40]]);
  });
});
