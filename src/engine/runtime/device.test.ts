import { describe, expect, it } from "vitest";
import { listInstalledDevices, resolveDevice, type Device } from "./device.js";
import { Runtime } from "./runtime.js";

describe("devices", () => {
  it("always include the CPU, which a runtime uses by default", () => {
    expect(listInstalledDevices()).toContain("cpu");
    expect([resolveDevice("cpu"), resolveDevice("auto")]).toEqual(["cpu", "cpu"]);
    const runtime = new Runtime();
    expect(runtime.device).toBe("cpu");
    return runtime.close();
  });

  it.each(["cuda", "quantum"])("refuse %s by name, and say what there is", (device) => {
    const refusal = expect.objectContaining({
      code: "DEVICE_UNAVAILABLE",
      message: expect.stringMatching(
        new RegExp(
          `^Device "${device}" is not available. Available devices: .*cpu\\. Expected one of auto, cpu, webgpu\\.$`,
        ),
      ) as string,
    }) as Error;
    expect(() => resolveDevice(device as Device)).toThrow(refusal);
    expect(() => new Runtime({ device: device as Device })).toThrow(refusal);
  });
});
