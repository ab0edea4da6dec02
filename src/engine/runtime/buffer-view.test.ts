import { Worker } from "node:worker_threads";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { openSumProductSession, tensorValues } from "../../../test/support/sum-product-session.js";
import { float32 } from "../tensor/tensor.js";
import { subview } from "./buffer-view.js";
import type { Runtime } from "./runtime.js";
import type { Session } from "./session.js";

let runtime: Runtime;
/** sum = x + y, product = x y. */
let session: Session;
beforeAll(async () => {
  ({ runtime, session } = await openSumProductSession());
});
afterAll(() => runtime.close());

describe("views", () => {
  it("are fed and fetched in place, even an output into an input's view", async () => {
    const state = runtime.allocate("float32", [1, 2]);
    await runtime.write(state, Float32Array.of(1, 10));
    for (let step = 0; step < 3; step++) {
      const results = await session.run({ x: state, y: state }, { fetches: { sum: state }, outputs: ["sum"] });
      expect(results).toEqual({});
    }
    expect(await runtime.read(state)).toEqual(float32([8, 80], [1, 2]));
    runtime.free(state);
  });

  it("start as zeros and may have any offset in their buffer", async () => {
    const buffer = runtime.allocate("float32", [4, 2]);
    expect(tensorValues(await runtime.read(buffer))).toEqual([0, 0, 0, 0, 0, 0, 0, 0]);
    await runtime.write(subview(buffer, 2, [2, 2]), Float32Array.of(1, 2, 3, 4));
    const middle = subview(subview(buffer, 2, [3, 2]), 2, [1, 2]);
    expect(tensorValues(await runtime.read(middle))).toEqual([3, 4]);
    await session.run(
      { x: middle, y: float32([10, 10], [1, 2]) },
      { fetches: { product: subview(buffer, 6, [1, 2]), sum: subview(buffer, 0, [1, 2]) } },
    );
    expect(tensorValues(await runtime.read(buffer))).toEqual([13, 14, 1, 2, 3, 4, 30, 40]);
    runtime.free(buffer);
  });

  it("hold other element types", async () => {
    const wide = runtime.allocate("int64", [3]);
    await runtime.write(wide, BigInt64Array.of(1n, -2n, 2n ** 40n));
    expect((await runtime.read(subview(wide, 1, [2]))).data).toEqual(BigInt64Array.of(-2n, 2n ** 40n));
    const flags = runtime.allocate("bool", [3]);
    await runtime.write(subview(flags, 1, [1]), Uint8Array.of(1));
    expect((await runtime.read(flags)).data).toEqual(Uint8Array.of(0, 1, 0));
    [wide, flags].forEach((view) => runtime.free(view));
  });

  it("reject offsets out of bounds and data of another size", async () => {
    const view = runtime.allocate("float32", [2, 2]);
    expect(() => subview(view, 2, [3])).toThrow("exceeds");
    expect(() => subview(view, -1, [1])).toThrow("exceeds");
    expect(() => subview(subview(view, 2, [2]), 1, [2])).toThrow("exceeds");
    await expect(runtime.write(view, Float32Array.of(1))).rejects.toMatchObject({ code: "SHAPE_MISMATCH" });
    await expect(session.run({ x: view, y: subview(view, 0, [1, 2]) })).rejects.toThrow('Input "y" must be');
    runtime.free(view);
  });

  it("cannot be used once they are freed", async () => {
    const view = runtime.allocate("float32", [1, 2]);
    const other = runtime.allocate("float32", [1, 2]);
    runtime.free(view);
    const freed = { code: "RUNTIME_FAILED", message: expect.stringContaining("freed") as string };
    await expect(runtime.read(view)).rejects.toMatchObject(freed);
    await expect(runtime.write(view, new Float32Array(2))).rejects.toMatchObject(freed);
    await expect(session.run({ x: view, y: other })).rejects.toMatchObject(freed);
    await expect(session.run({ x: other, y: other }, { fetches: { sum: view } })).rejects.toMatchObject(freed);
    await expect(session.run({ x: other, y: other })).resolves.toHaveProperty("sum");
    runtime.free(other);
  });
});

describe("bindings", () => {
  it("combine with a run's other inputs and outputs", async () => {
    const state = runtime.allocate("float32", [1, 2]);
    await runtime.write(state, Float32Array.of(1, 2));
    const binding = runtime.bind({ feeds: { x: state }, fetches: { sum: state } });
    for (let step = 1; step <= 3; step++) {
      const results = await session.run({ y: float32([step, step], [1, 2]) }, { bindings: [binding] });
      expect(Object.keys(results)).toEqual(["product"]);
    }
    expect(tensorValues(await runtime.read(state))).toEqual([7, 8]);
    runtime.unbind(binding);
    runtime.free(state);
  });

  it("allow several steps in one message", async () => {
    const state = runtime.allocate("float32", [1, 2]);
    await runtime.write(state, Float32Array.of(1, 2));
    const step = session.request({ x: state, y: state }, { fetches: { sum: state }, outputs: ["sum"] });
    const last = session.request({ x: state, y: float32([1, 1], [1, 2]) }, { outputs: ["product"] });
    const result = await runtime.sequence([step, step, last]);
    expect(result).toEqual({ product: float32([4, 8], [1, 2]) });
    runtime.free(state);
  });

  it("travel with the next request of the same turn, or alone at its end", async () => {
    const post = vi.spyOn(Worker.prototype, "postMessage");
    const state = runtime.allocate("float32", [1, 2]);
    const binding = runtime.bind({ feeds: { x: state, y: state } });
    const { sum } = await session.run({}, { bindings: [binding] });
    expect([tensorValues(sum), post.mock.calls.length]).toEqual([[0, 0], 1]);
    runtime.unbind(binding);
    runtime.free(state);
    expect(post).toHaveBeenCalledTimes(1);
    await Promise.resolve();
    expect(post).toHaveBeenCalledTimes(2);
    post.mockRestore();
  });
});
