import { describe, expect, it } from "vitest";
import { describeGpu, findMissingVulkan } from "./describe-gpu.js";

const LOADER = "/usr/lib/x86_64-linux-gnu/libvulkan.so.1";

function find(files: readonly string[], configured?: string): string[] {
  return findMissingVulkan({
    configured,
    exists: (path) => files.includes(path),
    list: (folder) =>
      files.filter((path) => path.startsWith(`${folder}/`)).map((path) => path.slice(folder.length + 1)),
  });
}

describe("findMissingVulkan", () => {
  it("finds nothing where the loader and a driver are installed", () => {
    expect(find([LOADER, "/usr/share/vulkan/icd.d/radeon_icd.x86_64.json"])).toEqual([]);
    expect(find([LOADER, "/opt/icd.json"], "/opt/icd.json")).toEqual([]);
  });

  it.each([
    ["a missing loader", find(["/usr/share/vulkan/icd.d/a.json"]), /libvulkan1/u],
    ["an NVIDIA container without its driver", find([LOADER, "/dev/nvidia0"]), /NVIDIA_DRIVER_CAPABILITIES/u],
    ["a GPU without a driver", find([LOADER, "/dev/dri/renderD128"]), /mesa-vulkan-drivers/u],
    ["a container without a GPU", find([LOADER]), /--gpus all/u],
    ["a driver file that does not exist", find([LOADER], "/opt/icd.json"), /VK_ICD_FILENAMES.*\/opt\/icd\.json/u],
  ])("names the cure for %s", (_, [message, ...others], expected) => {
    expect(message).toMatch(expected);
    expect(others).toEqual([]);
  });
});

describe("describeGpu", () => {
  it("names the adapter, its features and its largest buffer", () => {
    const features = ["depth-clip-control", "shader-f16"];
    const text = describeGpu({ adapter: "nvidia hopper", features, maxBufferBytes: 2 ** 31 });
    expect(text).toBe("nvidia hopper; buffers up to 2.1 GB; shader-f16");
  });

  it("warns of a software device", () => {
    expect(describeGpu({ adapter: "google SwiftShader", features: [], maxBufferBytes: 1e9 })).toContain("software");
  });
});
