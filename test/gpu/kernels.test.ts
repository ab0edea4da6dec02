import { afterAll, describe, expect, it } from "vitest";
import { whyNoGpu } from "../support/gpu.js";
import { subview, type BufferView } from "../../src/engine/runtime/buffer-view.js";
import type { CpuKernelCall } from "../../src/engine/runtime/kernels/run-kernel.js";
import { Runtime } from "../../src/engine/runtime/runtime.js";

const reason = await whyNoGpu();

const VECTORS = {
  x: [0.5, -1.25, 2, 0, -0.001, 7],
  y: [0.1, -0.2, 0.3, 0, 1e-6, -3],
  m: [0.2, 0.1, -0.1, 0, 0, 1],
  v: [0.3, 0.2, 0.1, 0, 1e-6, 4],
};

type Views = Readonly<Record<keyof typeof VECTORS, BufferView>>;

/** Calls that change or read the vectors. */
const CALLS: readonly ((views: Views) => CpuKernelCall)[] = [
  ({ x }) => ({ name: "fill", target: subview(x, 1, [2]), value: 3 }),
  ({ x, y }) => ({ name: "addScaled", target: x, source: y, scale: -0.5 }),
  ({ x, y }) => ({ name: "addScaled", target: subview(x, 3, [3]), source: subview(y, 1, [3]), scale: 2 }),
  ({ x }) => ({ name: "sumSquares", source: x }),
  ({ x, y, m, v }) => ({
    name: "adamw",
    parameters: x,
    gradients: y,
    firstMoment: m,
    secondMoment: v,
    learningRate: 0.01,
    beta1: 0.9,
    beta2: 0.99,
    epsilon: 1e-8,
    weightDecay: 0.1,
    step: 3,
    gradientScale: 0.5,
  }),
  ({ x, y, m }) => ({
    name: "sgd",
    parameters: x,
    gradients: y,
    velocity: m,
    learningRate: 0.1,
    momentum: 0.9,
    weightDecay: 0.01,
    gradientScale: 1,
  }),
  ({ x, y }) => ({
    name: "copyBlocks",
    source: x,
    target: y,
    sections: 2,
    sourceStride: 3,
    targetStride: 3,
    plan: Int32Array.of(0, 1, 1, 1, 0, 1),
  }),
];

/** Returns the results of all calls and the vectors after them. */
async function runAll(device: "cpu" | "webgpu"): Promise<number[]> {
  const runtime = new Runtime({ device, threads: 1 });
  const views: Record<string, BufferView> = {};
  for (const [name, values] of Object.entries(VECTORS)) {
    views[name] = runtime.allocate("float32", [values.length]);
    await runtime.write(views[name], Float32Array.from(values));
  }
  const results: number[] = [];
  for (const call of CALLS) {
    const result = await runtime.kernel(call(views as Views));
    if (typeof result === "number") results.push(result);
    for (const view of Object.values(views)) results.push(...((await runtime.read(view)).data as Float32Array));
  }
  await runtime.close();
  return results;
}

describe.skipIf(reason !== undefined)(`kernels on the GPU${reason === undefined ? "" : ` (${reason})`}`, () => {
  const runtime = reason === undefined ? new Runtime({ device: "webgpu" }) : undefined;
  afterAll(() => runtime?.close());

  it("change buffers as the processor's kernels do", async () => {
    const [expected, actual] = [await runAll("cpu"), await runAll("webgpu")];
    expect(actual).toEqual(expected.map((value) => expect.closeTo(value, 5) as unknown));
  });

  it("reject views of different sizes, blocks out of bounds and freed buffers", async () => {
    const [long, short] = [3, 2].map((size) => runtime!.allocate("float32", [size]));
    await expect(runtime!.kernel({ name: "addScaled", target: long, source: short, scale: 1 })).rejects.toThrow(
      "3 and 2 elements",
    );
    const plan = Int32Array.of(2, 0, 2);
    const copy = { sections: 1, sourceStride: 3, targetStride: 3, plan };
    await expect(runtime!.kernel({ name: "copyBlocks", source: long, target: short, ...copy })).rejects.toThrow(
      "out of bounds",
    );
    runtime!.free(long);
    await expect(runtime!.read(long)).rejects.toThrow("after it was freed");
  });
});
