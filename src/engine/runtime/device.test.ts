import { describe, expect, it } from "vitest";
import { listInstalledDevices, resolveProviders, type Device } from "./device.js";
import { Runtime } from "./runtime.js";

const known = ["cpu", "webgpu", "cuda"] as const;

describe("devices", () => {
  it("always include the CPU, which CUDA falls back to", () => {
    expect(listInstalledDevices()).toContain("cpu");
    expect(resolveProviders("cpu")).toEqual({ device: "cpu", providers: ["cpu"] });
    for (const device of listInstalledDevices().filter((name) => name === "cuda"))
      expect(resolveProviders(device)).toEqual({ device, providers: ["cuda", "cpu"] });
  });

  it.runIf(listInstalledDevices().includes("webgpu"))("leave no node of a graph for WebGPU to ONNX Runtime", () => {
    expect(resolveProviders("webgpu")).toEqual({ device: "webgpu", providers: [] });
  });

  it("resolve auto to CUDA where it is installed, else to the CPU", () => {
    const expected = listInstalledDevices().includes("cuda") ? "cuda" : "cpu";
    expect(resolveProviders("auto").device).toBe(expected);
    const runtime = new Runtime();
    expect(runtime.device).toBe(expected);
    return runtime.close();
  });

  it("report how to install a missing one", () => {
    const missing = [...known.filter((device) => !listInstalledDevices().includes(device)), "quantum" as Device];
    for (const device of missing) {
      const refusal = expect.objectContaining({
        code: "DEVICE_UNAVAILABLE",
        message: expect.stringMatching(
          new RegExp(`^Device "${device}" is not available. Available devices: .*cpu\\. \\w`),
        ) as string,
      }) as Error;
      expect(() => resolveProviders(device)).toThrow(refusal);
      expect(() => new Runtime({ device })).toThrow(refusal);
    }
    expect(() => resolveProviders("quantum" as Device)).toThrow("Expected one of auto, cpu, webgpu, cuda.");
  });
});
