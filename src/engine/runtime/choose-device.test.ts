import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { chooseDevice, getDeviceRates, prefersGpu } from "./choose-device.js";
import { isSoftwareAdapter, listInstalledDevices } from "./device.js";

const LARGE = 135e6;

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "devices-"));
  vi.stubEnv("LLAMAGYM_CACHE", folder);
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(folder, { recursive: true });
});

const findFile = async () => join(folder, "devices", (await readdir(join(folder, "devices")))[0]);
const readKept = async () => JSON.parse(await readFile(await findFile(), "utf8")) as Record<string, unknown>;

describe("the device of auto", () => {
  it("is the GPU where it is at least twice as fast", () => {
    expect(prefersGpu({ cpu: 100, webgpu: 200 })).toBe(true);
    expect(prefersGpu({ cpu: 100, webgpu: 199 })).toBe(false);
    expect(prefersGpu({ cpu: 100, webgpu: 0 })).toBe(false);
  });

  it("is the CPU for a small model, without a measurement", async () => {
    expect(await chooseDevice(1e6)).toBe("cpu");
    await expect(readKept()).rejects.toThrow("ENOENT");
  });

  it.runIf(listInstalledDevices().includes("webgpu"))(
    "is measured once, and chosen by what was measured on this machine with these threads",
    async () => {
      const { cpu } = await getDeviceRates({ threads: 1, refresh: true });
      expect(cpu).toBeGreaterThan(0);
      const kept = await readKept();
      const choose = async (change: object, threads = 1) => {
        await writeFile(await findFile(), JSON.stringify({ ...kept, ...change }));
        vi.resetModules();
        const fresh = await import("./choose-device.js");
        return fresh.chooseDevice(LARGE, threads);
      };
      expect(await choose({ cpu: 1, webgpu: 2 })).toBe("webgpu");
      expect(await choose({ cpu: 2, webgpu: 3 })).toBe("cpu");
      // Rates of another machine, old ones and damaged ones do not count.
      const slow = { cpu: 1e-9, webgpu: 1e-9 };
      for (const change of [
        { ...slow, key: "other" },
        { ...slow, time: 0 },
        { ...slow, cpu: "fast" },
      ]) {
        await choose(change);
        expect((await readKept()).cpu).toBeGreaterThan(1e-3);
      }
    },
  );

  it("is no program on the processor", () => {
    expect(isSoftwareAdapter("google swiftshader SwiftShader driver 5.0.0")).toBe(true);
    expect(isSoftwareAdapter("nvidia hopper NVIDIA H200")).toBe(false);
  });
});
