import { afterAll, describe, expect, it } from "vitest";
import { Runtime } from "../runtime/runtime.js";
import { float32 } from "../tensor/tensor.js";
import {
  add,
  argMax,
  cast,
  compile,
  exp,
  gradient,
  input,
  layerNorm,
  mul,
  neg,
  reduceSum,
  scalar,
  split,
  stopGradient,
  sub,
  tanh,
  type Node,
} from "./index.js";
import { output } from "./ops/layout.js";

const runtime = new Runtime({ device: "cpu", threads: 1 });
afterAll(() => runtime.close());

const VALUES = { x: [0.5, -1, 2], y: [1.5, 0.25, -0.75] };
const x = input("x", "float32", [3]);
const y = input("y", "float32", [3]);

/** Values of nodes at x = [0.5, -1, 2], y = [1.5, 0.25, -0.75]. */
async function evaluate(nodes: readonly Node[]): Promise<number[][]> {
  const session = await runtime.createSession(compile(Object.fromEntries(nodes.map((node, i) => [`value${i}`, node]))));
  const results = await session.run({ x: float32(VALUES.x), y: float32(VALUES.y) });
  await session.release();
  return nodes.map((_, i) => [...results[`value${i}`].data]);
}

/** The slope of f at each x, the others held, by central differences in float64. */
function slopes(f: (x: readonly number[]) => number): number[] {
  return VALUES.x.map((value, i) => {
    const at = (moved: number) => f(VALUES.x.with(i, moved));
    return (at(value + 1e-5) - at(value - 1e-5)) / 2e-5;
  });
}

const near = (expected: readonly number[]): unknown[] => expected.map((value) => expect.closeTo(value, 4) as unknown);

const total = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0);

describe("gradient", () => {
  it("rejects a loss that is not a scalar", () => {
    expect(() => gradient(x, [x])).toThrow("The loss must be a scalar, got shape [3].");
    expect(() => gradient(reduceSum(x, [0], true), [x])).toThrow(/scalar.*\[1\]/);
  });

  it("rejects and names a parameter that the loss does not depend on", () => {
    const unrelated = input("unrelated weights", "float32", [2]);
    const loss = reduceSum(mul(x, x));
    for (const parameters of [[unrelated], [x, unrelated]]) {
      expect(() => gradient(loss, parameters)).toThrow(
        expect.objectContaining({
          code: "INVALID_ARGUMENT",
          message: expect.stringMatching(/does not depend on parameter \d \(unrelated weights\)/) as string,
        }),
      );
    }
    expect(() => gradient(loss, [exp(x)])).toThrow("(exp [3])");
    expect(() => gradient(reduceSum(stopGradient(x)), [x])).toThrow("does not depend");
    expect(() => gradient(reduceSum(cast(argMax(x), "float32")), [x])).toThrow("does not depend");
  });

  it("is 1 with respect to the loss itself", async () => {
    const loss = input("z", "float32", []);
    const [slope] = gradient(loss, [loss]);
    expect((await evaluate([slope]))[0]).toEqual([1]);
  });

  it("sums over all uses of a parameter", async () => {
    // f = sum(x y + x x + tanh(x) x - y): three uses of x as a factor, one inside a function.
    const shared = mul(x, x);
    const loss = reduceSum(sub(add(add(mul(x, y), shared), mul(tanh(x), x)), y));
    const [dx, dy] = await evaluate(gradient(loss, [x, y]));
    const f = (at: readonly number[]) =>
      total(at.map((v, i) => v * VALUES.y[i] + v * v + Math.tanh(v) * v - VALUES.y[i]));
    expect(dx).toEqual(near(slopes(f)));
    expect(dy).toEqual(near(VALUES.x.map((value) => value - 1)));
  });

  it("sums over both uses of an intermediate value", async () => {
    const square = mul(x, x);
    const loss = reduceSum(add(exp(neg(square)), mul(square, square)));
    const [dx, dSquare] = await evaluate(gradient(loss, [x, square]));
    expect(dx).toEqual(near(slopes((at) => total(at.map((v) => Math.exp(-v * v) + v ** 4)))));
    expect(dSquare).toEqual(near(VALUES.x.map((v) => 2 * v * v - Math.exp(-v * v))));
  });

  it("treats inputs of the same name as one value", async () => {
    const again = input("x", "float32", [3]);
    const loss = reduceSum(mul(x, mul(again, again)));
    for (const parameter of [x, again, input("x", "float32", [3])]) {
      const [dx] = await evaluate(gradient(loss, [parameter]));
      expect(dx).toEqual(near(VALUES.x.map((v) => 3 * v * v)));
    }
  });

  it("flows through operations with several outputs", async () => {
    const [first, rest] = split(mul(x, y), 0, [1, 2]);
    const weight = input("y", "float32", [3]);
    const normal = layerNorm(add(x, y), weight, y, 0.1);
    const loss = add(
      add(mul(reduceSum(first), 3), reduceSum(mul(rest, rest))),
      add(reduceSum(mul(normal, normal)), reduceSum(mul(output(normal, 2), output(normal, 1)))),
    );
    const f = (at: readonly number[]) => {
      const products = at.map((v, i) => v * VALUES.y[i]);
      const sums = at.map((v, i) => v + VALUES.y[i]);
      const mean = total(sums) / 3;
      const inverse = 1 / Math.sqrt(total(sums.map((v) => (v - mean) ** 2)) / 3 + 0.1);
      const normals = sums.map((v, i) => (v - mean) * inverse * VALUES.y[i] + VALUES.y[i]);
      return 3 * products[0] + products[1] ** 2 + products[2] ** 2 + total(normals.map((v) => v * v)) + mean * inverse;
    };
    const [value, dx] = await evaluate([loss, ...gradient(loss, [x])]);
    expect(value).toEqual(near([f(VALUES.x)]));
    expect(dx).toEqual(near(slopes(f)));
  });

  it("differentiates a gradient again", async () => {
    const [dx] = gradient(reduceSum(mul(mul(x, x), x)), [x]);
    const [ddx] = gradient(reduceSum(mul(dx, y)), [x]);
    expect((await evaluate([ddx]))[0]).toEqual(near(VALUES.x.map((v, i) => 6 * v * VALUES.y[i])));
  });

  it("points uphill: a step along it raises the loss and a step against it lowers the loss", async () => {
    const loss = (at: Node) => reduceSum(exp(mul(at, y)));
    const [dx] = gradient(loss(x), [x]);
    const step = mul(dx, 0.01);
    const [[before], [up], [down]] = await evaluate([loss(x), loss(add(x, step)), loss(sub(x, step))]);
    expect(up).toBeGreaterThan(before);
    expect(down).toBeLessThan(before);
  });

  it("handles long chains without recursion", async () => {
    let value = x;
    for (let i = 0; i < 20_000; i++) value = add(value, scalar(0));
    const gradients = gradient(reduceSum(value), [x]);
    expect(gradients[0].shape).toEqual([3]);
    expect(compile({ value }).inputs.map(({ name }) => name)).toEqual(["x"]);
  });
});
