// oxlint-disable-next-line import/no-unassigned-import -- It must come before ONNX Runtime is loaded.
import "./disable-telemetry.js";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { listSupportedBackends } from "onnxruntime-node";
import { LlamaGymError } from "../../core/errors.js";

export type Device = "auto" | "cpu" | "webgpu" | "cuda";

const INSTALL_HINTS: Readonly<Record<Exclude<Device, "auto">, string>> = {
  cpu: "It comes with onnxruntime-node; reinstall the package.",
  webgpu:
    "It comes with onnxruntime-node for Linux x64, Windows and macOS and needs a graphics driver (Vulkan, Direct3D 12 or Metal).",
  cuda: "Install its files with `npm rebuild onnxruntime-node --onnxruntime-node-install=cuda12` on Linux x64 with CUDA 12 and cuDNN 9.",
};

/** ONNX Runtime names cuda wherever it could be had; its files are a separate download beside the binding. */
function isCudaInstalled(): boolean {
  const root = dirname(createRequire(import.meta.url).resolve("onnxruntime-node/package.json"));
  const library = process.platform === "win32" ? "onnxruntime_providers_cuda.dll" : "libonnxruntime_providers_cuda.so";
  return existsSync(join(root, "bin", "napi-v6", process.platform, process.arch, library));
}

/** The version of ONNX Runtime's package. */
export function getRuntimeVersion(): string {
  return (createRequire(import.meta.url)("onnxruntime-node/package.json") as { version: string }).version;
}

/** Devices whose files are installed; whether a graphics card answers shows only when a session is made on it. */
export function listInstalledDevices(): Exclude<Device, "auto">[] {
  const names = new Set(
    listSupportedBackends().flatMap(({ name }) => (name !== "cuda" || isCudaInstalled() ? [name] : [])),
  );
  return (["cuda", "webgpu", "cpu"] as const).filter((device) => names.has(device));
}

/**
 * The execution providers for a device: the one place where they are chosen. "auto" is cuda where its files are installed,
 * else cpu: on small models a processor beats an integrated graphics card, so webgpu is taken only when asked for.
 * Throws DEVICE_UNAVAILABLE.
 */
export function resolveProviders(device: Device): { device: Exclude<Device, "auto">; providers: readonly string[] } {
  const installed = listInstalledDevices();
  const chosen = device === "auto" ? (installed.includes("cuda") ? "cuda" : "cpu") : device;
  if (!installed.includes(chosen)) {
    const hint =
      chosen in INSTALL_HINTS ? INSTALL_HINTS[chosen] : `Devices are: auto, ${Object.keys(INSTALL_HINTS).join(", ")}.`;
    throw new LlamaGymError(
      "DEVICE_UNAVAILABLE",
      `Device "${chosen}" is not available here; available: ${installed.join(", ")}. ${hint}`,
    );
  }
  return { device: chosen, providers: chosen === "cpu" ? ["cpu"] : [chosen, "cpu"] };
}
