// oxlint-disable-next-line import/no-unassigned-import -- It must come before ONNX Runtime is loaded.
import "./disable-telemetry.js";
import { assets, fs, system } from "#platform";
import { listSupportedBackends } from "onnxruntime-node";
import { decodeUtf8 } from "../../core/bytes.js";
import { LlamaGymError } from "../../core/errors.js";

/** Execution device. */
export type Device = "auto" | "cpu" | "webgpu" | "cuda";

const INSTALL_HINTS: Readonly<Record<Exclude<Device, "auto">, string>> = {
  cpu: "It comes with onnxruntime-node; reinstall the package.",
  webgpu: "Install it with `npm install webgpu`; it needs a graphics driver (Vulkan, Direct3D 12 or Metal).",
  cuda: "Install its files with `npm rebuild onnxruntime-node --onnxruntime-node-install=cuda12` on Linux x64 with CUDA 12 and cuDNN 9.",
};

const RUNTIME_MANIFEST = "onnxruntime-node/package.json";

/** ONNX Runtime lists CUDA wherever it is supported; its libraries are a separate download. */
function isCudaInstalled(): boolean {
  const root = fs.dirname(assets.resolve(RUNTIME_MANIFEST));
  const library = system.os === "win32" ? "onnxruntime_providers_cuda.dll" : "libonnxruntime_providers_cuda.so";
  return fs.existsSync(fs.join(root, "bin", "napi-v6", system.os, system.arch, library));
}

/** Whether npm's webgpu is installed, or the host has WebGPU itself. */
function isWebgpuInstalled(): boolean {
  if ((globalThis as { navigator?: { gpu?: unknown } }).navigator?.gpu !== undefined) return true;
  try {
    return assets.resolve("webgpu") !== "";
  } catch {
    return false;
  }
}

/** Returns the version of the onnxruntime-node package. */
export function getRuntimeVersion(): string {
  const manifest = JSON.parse(decodeUtf8(fs.readBytesSync(assets.resolve(RUNTIME_MANIFEST)))) as { version: string };
  return manifest.version;
}

/** Lists devices whose libraries are installed; whether a GPU is usable is known only when a session is created. */
export function listInstalledDevices(): Exclude<Device, "auto">[] {
  const backends = new Set(listSupportedBackends().map(({ name }) => name));
  const isInstalled = {
    cuda: backends.has("cuda") && isCudaInstalled(),
    webgpu: isWebgpuInstalled(),
    cpu: backends.has("cpu"),
  };
  return (["cuda", "webgpu", "cpu"] as const).filter((device) => isInstalled[device]);
}

/**
 * Resolves a device to execution providers of ONNX Runtime. "auto" is "cuda" if installed, else "cpu": for small models a CPU
 * outperforms an integrated GPU, so "webgpu" is opt-in.
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
  const providers = { cpu: ["cpu"], cuda: ["cuda", "cpu"], webgpu: [] }[chosen];
  return { device: chosen, providers };
}
