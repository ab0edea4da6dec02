import { expect, it } from "vitest";
import { add, compile, input, mul, dim } from "../graph/index.js";
import { float32, zeros } from "../tensor/tensor.js";
import { Runtime } from "./runtime.js";

const MEGABYTE = 2 ** 20;

it("memory does not grow over 1,000 steps that allocate, bind and free", async () => {
  const rows = dim("rows");
  const state = input("state", "float32", [rows, 256]);
  const runtime = new Runtime({ device: "cpu", threads: 1 });
  const session = await runtime.createSession(compile({ next: add(state, 1), double: mul(state, 2) }));
  const step = async (i: number) => {
    // Two views of 0.5 MB and one output of that size by value: 1.5 GB in all, if nothing were
    // given back.
    const count = 512 - (i % 7);
    const [view, next] = [runtime.allocate("float32", [count, 256]), runtime.allocate("float32", [count, 256])];
    await runtime.write(view, zeros("float32", [count, 256]).data);
    const binding = runtime.bind({ feeds: { state: view }, fetches: { next } });
    const { double } = await session.run({}, { bindings: [binding] });
    expect(double.shape).toEqual([count, 256]);
    await session.run({ state: view }, { fetches: { next: view }, outputs: ["next"] });
    expect(await runtime.kernel({ name: "sumSquares", source: view })).toBe(count * 256);
    runtime.unbind(binding);
    [view, next].forEach((each) => runtime.free(each));
  };
  for (let i = 0; i < 200; i++) await step(i);
  const before = process.memoryUsage().rss;
  for (let i = 0; i < 1000; i++) await step(i);
  expect((process.memoryUsage().rss - before) / MEGABYTE).toBeLessThan(300);
  expect((await session.run({ state: float32([], [0, 256]) })).next.shape).toEqual([0, 256]);
  await runtime.close();
});
