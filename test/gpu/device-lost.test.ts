import { describe, expect, it } from "vitest";
import { GpuExecutor } from "../../src/engine/runtime/webgpu/gpu-executor.js";
import { whyNoGpu } from "../support/gpu.js";

const reason = await whyNoGpu();

describe.skipIf(reason !== undefined)(`a GPU that is lost${reason === undefined ? "" : ` (${reason})`}`, () => {
  it("ends every further request with an error that names the cure", async () => {
    const executor = await GpuExecutor.open();
    const place = { buffer: executor.createBuffer(4), start: 0 };
    executor.write(place, Uint32Array.of(1, 2, 3, 4));
    expect(await executor.read([{ ...place, words: 4 }])).toEqual([Uint32Array.of(1, 2, 3, 4)]);
    (executor as unknown as { device: { destroy(): void } }).device.destroy();
    const message = /the GPU was lost .*resume from the last checkpoint/u;
    await expect(executor.read([{ ...place, words: 4 }])).rejects.toThrow(message);
    expect(() => executor.checkErrors()).toThrow(message);
    expect(() => executor.checkErrors()).toThrow(message);
  });
});
