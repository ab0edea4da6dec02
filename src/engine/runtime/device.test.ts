import { describe, expect, it } from "vitest";
import { listInstalledDevices, resolveProviders, type Device } from "./device.js";
import { Runtime } from "./runtime.js";

const known = ["cpu", "webgpu", "cuda"] as const;

describe("devices", () => {
  it("always include the processor, which every other falls back to", () => {
    expect(listInstalledDevices()).toContain("cpu");
    expect(resolveProviders("cpu")).toEqual({ device: "cpu", providers: ["cpu"] });
    for (const device of listInstalledDevices().filter((name) => name !== "cpu"))
      expect(resolveProviders(device)).toEqual({ device, providers: [device, "cpu"] });
  });

  it("are chosen by auto: cuda where it is installed, else the processor", () => {
    const expected = listInstalledDevices().includes("cuda") ? "cuda" : "cpu";
    expect(resolveProviders("auto").device).toBe(expected);
    const runtime = new Runtime();
    expect(runtime.device).toBe(expected);
    return runtime.close();
  });

  it("say how to get one that is not there", () => {
    const missing = [...known.filter((device) => !listInstalledDevices().includes(device)), "quantum" as Device];
    for (const device of missing) {
      const refusal = expect.objectContaining({
        code: "DEVICE_UNAVAILABLE",
        message: expect.stringMatching(
          new RegExp(`^Device "${device}" is not available here; available: .*cpu\\. \\w`),
        ) as string,
      }) as Error;
      expect(() => resolveProviders(device)).toThrow(refusal);
      expect(() => new Runtime({ device })).toThrow(refusal);
    }
    expect(() => resolveProviders("quantum" as Device)).toThrow("Devices are: auto, cpu, webgpu, cuda.");
  });
});
