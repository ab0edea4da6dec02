import { assets } from "#platform";
import { LlamaGymError } from "../../core/errors.js";

/** Execution device. */
export type Device = "auto" | "cpu" | "webgpu";

/** A device that computes. */
export type ChosenDevice = Exclude<Device, "auto">;

/** Speed of products of matrices in GFLOP/s; 0 for a GPU that cannot be used. */
export type DeviceRates = Readonly<Record<ChosenDevice, number>>;

const DEVICES: readonly Device[] = ["auto", "cpu", "webgpu"];

const WEBGPU_HINT = "Install it with `npm install webgpu`; it needs a graphics driver (Vulkan, Direct3D 12 or Metal).";

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
export function listInstalledDevices(): ChosenDevice[] {
  return isWebgpuInstalled() ? ["webgpu", "cpu"] : ["cpu"];
}

/**
 * Returns the device of a runtime; "auto" is "cpu". `chooseDevice` decides by measurements for a
 * model.
 * @throws DEVICE_UNAVAILABLE when the device is not installed.
 */
export function resolveDevice(device: Device): ChosenDevice {
  const installed = listInstalledDevices();
  const chosen = device === "auto" ? "cpu" : device;
  if (installed.includes(chosen)) return chosen;
  const hint = DEVICES.includes(chosen) ? WEBGPU_HINT : `Expected one of ${DEVICES.join(", ")}.`;
  throw new LlamaGymError(
    "DEVICE_UNAVAILABLE",
    `Device "${chosen as string}" is not available. Available devices: ${installed.join(", ")}. ${hint}`,
  );
}

/** Returns the version of ONNX Runtime, which only workers load otherwise. */
export async function getRuntimeVersion(): Promise<string> {
  const onnxRuntime = await import("#onnxruntime");
  return onnxRuntime.getRuntimeVersion();
}

/** Whether an adapter is a program on the processor, by its name. */
export function isSoftwareAdapter(adapter: string): boolean {
  return /swiftshader|llvmpipe|software|basic render/iu.test(adapter);
}
