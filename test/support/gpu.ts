import { existsSync } from "node:fs";
import { Runtime } from "../../src/engine/runtime/runtime.js";

/** Chromium's Vulkan device on the processor. */
const SWIFTSHADER = "/usr/lib/chromium/vk_swiftshader_icd.json";

/**
 * Returns why no GPU can be used here; undefined if one can. Without a GPU, Chromium's SwiftShader
 * serves as one.
 */
export async function whyNoGpu(): Promise<string | undefined> {
  if (process.env.VK_ICD_FILENAMES === undefined && existsSync(SWIFTSHADER)) process.env.VK_ICD_FILENAMES = SWIFTSHADER;
  try {
    const runtime = new Runtime({ device: "webgpu" });
    try {
      await runtime.getGpuReport();
      return undefined;
    } finally {
      await runtime.close();
    }
  } catch (error) {
    return `skipped, as there is no Vulkan device (install chromium and libvulkan1): ${(error as Error).message}`;
  }
}
