import { assets } from "#platform";
import { CPU_PROVIDER, getRuntimeVersion, INSTALL_HINT, listDevices } from "#onnxruntime";
import { LlamaGymError } from "../../core/errors.js";

export { getRuntimeVersion };

/** Execution device. */
export type Device = "auto" | "cpu" | "webgpu" | "cuda";

const INSTALL_HINTS: Readonly<Record<Exclude<Device, "auto">, string>> = {
  cpu: INSTALL_HINT,
  webgpu: "Install it with `npm install webgpu`; it needs a graphics driver (Vulkan, Direct3D 12 or Metal).",
  cuda: "Install its files with `npm rebuild onnxruntime-node --onnxruntime-node-install=cuda12` on Linux x64 with CUDA 12 and cuDNN 9.",
};

/** Whether npm's webgpu is installed, or the host has WebGPU itself. */
function isWebgpuInstalled(): boolean {
  if ((globalThis as { navigator?: { gpu?: unknown } }).navigator?.gpu !== undefined) return true;
  try {
    return assets.resolve("webgpu") !== "";
  } catch {
    return false;
  }
}

/**
 * Lists devices whose libraries are installed; whether a GPU is usable is known only when a session
 * is created.
 */
export function listInstalledDevices(): Exclude<Device, "auto">[] {
  const installed = [...listDevices(), ...(isWebgpuInstalled() ? (["webgpu"] as const) : [])];
  return (["cuda", "webgpu", "cpu"] as const).filter((device) => installed.includes(device));
}

/**
 * Resolves a device to execution providers of ONNX Runtime. "auto" is "cuda" if installed, else
 * "cpu": for small models a CPU outperforms an integrated GPU, so "webgpu" is opt-in.
 * @throws DEVICE_UNAVAILABLE when the device is not installed.
 */
export function resolveProviders(device: Device): { device: Exclude<Device, "auto">; providers: readonly string[] } {
  const installed = listInstalledDevices();
  const chosen = device === "auto" ? (installed.includes("cuda") ? "cuda" : "cpu") : device;
  if (!installed.includes(chosen)) {
    const hint =
      chosen in INSTALL_HINTS
        ? INSTALL_HINTS[chosen]
        : `Expected one of auto, ${Object.keys(INSTALL_HINTS).join(", ")}.`;
    throw new LlamaGymError(
      "DEVICE_UNAVAILABLE",
      `Device "${chosen}" is not available. Available devices: ${installed.join(", ")}. ${hint}`,
    );
  }
  // GPUs run programs of this package (engine/gpu) instead of ONNX Runtime's.
  const providers = { cpu: [CPU_PROVIDER], cuda: ["cuda", CPU_PROVIDER], webgpu: [] }[chosen];
  return { device: chosen, providers };
}
