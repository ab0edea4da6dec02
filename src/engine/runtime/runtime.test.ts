import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openSumProductSession, tensorValues, x, y } from "../../../test/support/sum-product-session.js";
import {
  add,
  compile,
  expand,
  gatherRows,
  input,
  matmul,
  mul,
  reduceSum,
  scalar,
  dim,
  weight,
} from "../graph/index.js";
import { float32, int32, tensor, zeros } from "../tensor/tensor.js";
import { Runtime } from "./runtime.js";
import type { Session } from "./session.js";

let runtime: Runtime;
/** sum = x + y, product = x y. */
let session: Session;
beforeAll(async () => {
  ({ runtime, session } = await openSumProductSession());
});
afterAll(() => runtime.close());

describe("Session.run", () => {
  it("returns outputs by value for any size of the named dimensions", async () => {
    const results = await session.run({ x: float32([1, 2, 3, 4], [2, 2]), y: float32([5, 6, 7, 8], [2, 2]) });
    expect(results.sum).toEqual(float32([6, 8, 10, 12], [2, 2]));
    expect(results.product).toEqual(float32([5, 12, 21, 32], [2, 2]));
    const none = await session.run({ x: float32([], [0, 2]), y: float32([], [0, 2]) });
    expect(none.sum).toEqual(float32([], [0, 2]));
  });

  it("returns only the requested outputs", async () => {
    const feeds = { x: float32([1, 2], [1, 2]), y: float32([3, 4], [1, 2]) };
    expect(Object.keys(await session.run(feeds, { outputs: ["product"] }))).toEqual(["product"]);
  });

  it("leaves fed tensors unchanged", async () => {
    const long = Float32Array.of(9, 9, 1, 2, 9);
    const part = tensor("float32", [1, 2], long.subarray(2, 4));
    const results = await session.run({ x: part, y: part });
    expect(tensorValues(results.sum)).toEqual([2, 4]);
    expect([...long]).toEqual([9, 9, 1, 2, 9]);
  });

  it("keeps concurrent runs apart", async () => {
    const runs = Array.from({ length: 20 }, (_, i) =>
      session.run({ x: float32([i, i], [1, 2]), y: float32([1, 2], [1, 2]) }),
    );
    expect((await Promise.all(runs)).map(({ sum }) => tensorValues(sum))).toEqual(
      Array.from({ length: 20 }, (_, i) => [i + 1, i + 2]),
    );
  });

  it("names a missing or ill-shaped input and the expected type", async () => {
    const fitting = { x: float32([1, 2], [1, 2]), y: float32([3, 4], [1, 2]) };
    const refused: [Record<string, typeof fitting.x | ReturnType<typeof int32>>, string][] = [
      [{ x: fitting.x }, 'Input "y" is missing.'],
      [{ ...fitting, y: int32([3, 4], [1, 2]) }, 'Input "y" must be float32[rows, 2], got int32[1, 2]'],
      [{ ...fitting, y: float32([3, 4]) }, 'Input "y" must be float32[rows, 2], got float32[2]'],
      [{ ...fitting, y: float32([3, 4], [2, 1]) }, 'Input "y" must be float32[rows, 2], got float32[2, 1]'],
      [{ ...fitting, y: float32([1, 2, 3, 4], [2, 2]) }, 'Input "y" must be float32[rows, 2], got float32[2, 2]'],
      [{ ...fitting, x: { dtype: "float32", shape: [1, 2], data: Float32Array.of(1) } }, "with 1 elements"],
    ];
    for (const [feeds, message] of refused) {
      await expect(session.run(feeds)).rejects.toMatchObject({
        code: "SHAPE_MISMATCH",
        message: expect.stringContaining(message) as string,
      });
    }
    await expect(session.run(fitting)).resolves.toHaveProperty("sum");
  });
});

describe("outputs", () => {
  it("may have any name", async () => {
    const names = ["dtype", "data", "tokens", "shape", "length"];
    const odd = await runtime.createSession(compile(Object.fromEntries(names.map((name, i) => [name, add(x, i)]))));
    const results = await odd.run({ x: float32([1, 2], [1, 2]) });
    expect(names.map((name) => tensorValues(results[name]))).toEqual(names.map((_, i) => [1 + i, 2 + i]));
    await odd.release();
  });

  const feeds = { x: float32([1, 2, 3, 4], [2, 2]), y: float32([0, 0, 0, 0], [2, 2]) };

  it("are rejected under an unknown name", async () => {
    const view = runtime.allocate("float32", [2, 2]);
    const unknown = {
      code: "INVALID_ARGUMENT",
      message: 'The graph has no output "mean"; its outputs are "sum", "product".',
    };
    await expect(session.run(feeds, { outputs: ["sum", "mean"] })).rejects.toMatchObject(unknown);
    await expect(session.run(feeds, { fetches: { mean: view } })).rejects.toMatchObject(unknown);
    runtime.free(view);
  });

  it("reject a view of another shape or type and leave it unchanged", async () => {
    for (const view of [
      runtime.allocate("float32", [1, 2]),
      runtime.allocate("float32", [3, 2]),
      runtime.allocate("float32", [4]),
      runtime.allocate("int32", [2, 2]),
    ]) {
      await expect(session.run(feeds, { fetches: { sum: view } })).rejects.toMatchObject({ code: "RUNTIME_FAILED" });
      expect(tensorValues(await runtime.read(view)).every((value) => value === 0)).toBe(true);
      runtime.free(view);
    }
    expect(tensorValues((await session.run(feeds)).sum)).toEqual([1, 2, 3, 4]);
  });
});

describe("Runtime", () => {
  it("leaves the event loop free while it computes", async () => {
    const size = 1500;
    const big = expand(input("seed", "float32", []), [size, size]);
    const busy = await runtime.createSession(compile({ total: reduceSum(matmul(matmul(big, big), big)) }));
    let ticks = 0;
    let running = true;
    const tick = () => {
      ticks++;
      if (running) setImmediate(tick);
    };
    setImmediate(tick);
    const { total } = await busy.run({ seed: float32([0.01], []) });
    running = false;
    expect(total.data[0] / (size ** 4 * 1e-6)).toBeCloseTo(1, 3);
    expect(ticks).toBeGreaterThan(20);
    await busy.release();
  });

  it("reads frozen weights from buffers", async () => {
    const graph = compile({ y: add(input("x", "float32", [2]), weight("w", "float32", [2])) });
    const data = new Uint8Array(Float32Array.of(7, 8, 9).buffer);
    const weighted = await runtime.createSession(graph, {
      locate: ({ name }) => ({ file: `${name} file`, offset: 4, byteLength: 8 }),
      buffers: [{ name: "w file", data }],
    });
    expect(tensorValues((await weighted.run({ x: float32([1, 2]) })).y)).toEqual([9, 11]);
    await weighted.release();
    await expect(runtime.createSession(graph)).rejects.toMatchObject({
      code: "INVALID_ARGUMENT",
      message: expect.stringContaining('weight "w"') as string,
    });
    await expect(
      runtime.createSession(graph, { locate: () => ({ file: "nowhere.bin", offset: 0, byteLength: 8 }) }),
    ).rejects.toMatchObject({ code: "RUNTIME_FAILED", message: expect.stringContaining("nowhere.bin") as string });
  });

  it("keeps working after a failed run", async () => {
    const table = input("table", "float32", [3, 2]);
    const gather = await runtime.createSession(compile({ y: gatherRows(table, input("ids", "int32", [dim("rows")])) }));
    const feeds = { table: zeros("float32", [3, 2]) };
    await expect(gather.run({ ...feeds, ids: int32([7]) })).rejects.toMatchObject({ code: "RUNTIME_FAILED" });
    expect((await gather.run({ ...feeds, ids: int32([2]) })).y.shape).toEqual([1, 2]);
    await gather.release();
  });

  it("reports failed allocations and bindings on use", async () => {
    const huge = runtime.allocate("float32", [1e6, 1e6]);
    await expect(runtime.read(huge)).rejects.toThrow("allocation failed");
    const freed = runtime.allocate("float32", [1, 2]);
    runtime.free(freed);
    const binding = runtime.bind({ feeds: { x: freed, y: freed } });
    await expect(session.run({}, { bindings: [binding] })).rejects.toThrow("freed");
    runtime.unbind(binding);
    await expect(session.run({}, { bindings: [binding] })).rejects.toThrow("unbind");
    runtime.free(huge);
  });

  it("rejects a released session", async () => {
    const short = await runtime.createSession(compile({ y: mul(input("x", "float32", []), scalar(2)) }));
    await short.release();
    await short.release();
    await expect(short.run({ x: float32([1], []) })).rejects.toMatchObject({
      code: "RUNTIME_FAILED",
      message: expect.stringContaining("released") as string,
    });
  });

  it("rejects all requests once its worker has ended, including pending ones", async () => {
    const other = new Runtime({ device: "cpu", threads: 1 });
    const own = await other.createSession(compile({ sum: add(x, y) }));
    const feeds = { x: float32([1, 2], [1, 2]), y: float32([3, 4], [1, 2]) };
    const pending = own.run(feeds);
    const ended = { code: "RUNTIME_FAILED", message: "The compute worker ended with exit code 1." };
    const { worker } = other as unknown as { readonly worker: { terminate(): Promise<void> } };
    await Promise.allSettled([pending, worker.terminate()]);
    await expect(own.run(feeds)).rejects.toMatchObject(ended);
    await other.close();
  });

  it("rejects all requests after close, including pending ones", async () => {
    const other = new Runtime({ device: "cpu", threads: 1 });
    const own = await other.createSession(compile({ sum: add(x, y) }));
    const feeds = { x: float32([1, 2], [1, 2]), y: float32([3, 4], [1, 2]) };
    const view = other.allocate("float32", [1, 2]);
    const underWay = Promise.allSettled([own.run(feeds), own.run(feeds)]);
    await other.close();
    const closed = { code: "RUNTIME_FAILED", message: expect.stringContaining("closed") as string };
    for (const outcome of await underWay) expect(["fulfilled", "rejected"]).toContain(outcome.status);
    await expect(own.run(feeds)).rejects.toMatchObject(closed);
    await expect(other.read(view)).rejects.toMatchObject(closed);
    await expect(other.write(view, new Float32Array(2))).rejects.toMatchObject(closed);
    await expect(other.createSession(compile({ sum: add(x, y) }))).rejects.toMatchObject(closed);
    await expect(other.kernel({ name: "fill", target: view, value: 1 })).rejects.toMatchObject(closed);
    other.free(view);
    await other.close();
  });
});
