// oxlint-disable-next-line import/no-unassigned-import -- It must come before ONNX Runtime is loaded.
import "./disable-telemetry.js";
import { assets, fs, system } from "#platform";
import { InferenceSession, listSupportedBackends, Tensor } from "onnxruntime-node";
import { decodeUtf8 } from "../../../core/bytes.js";
import type { OnnxRuntime } from "./onnxruntime.js";

export { InferenceSession, Tensor };

/** Name of the execution provider of the CPU. */
export const CPU_PROVIDER = "cpu";

export const INSTALL_HINT = "It comes with onnxruntime-node; reinstall the package.";

const MANIFEST = "onnxruntime-node/package.json";

export function getRuntimeVersion(): string {
  const manifest = JSON.parse(decodeUtf8(fs.readBytesSync(assets.resolve(MANIFEST)))) as { version: string };
  return manifest.version;
}

export function listDevices(): ("cpu" | "cuda")[] {
  const backends = new Set(listSupportedBackends().map(({ name }) => name));
  return [
    ...(backends.has("cuda") && isCudaInstalled() ? (["cuda"] as const) : []),
    ...(backends.has("cpu") ? (["cpu"] as const) : []),
  ];
}

/** ONNX Runtime lists CUDA wherever it is supported; its libraries are a separate download. */
function isCudaInstalled(): boolean {
  const root = fs.dirname(assets.resolve(MANIFEST));
  const library = system.os === "win32" ? "onnxruntime_providers_cuda.dll" : "libonnxruntime_providers_cuda.so";
  return fs.existsSync(fs.join(root, "bin", "napi-v6", system.os, system.arch, library));
}

export function createSession(model: Uint8Array, options: InferenceSession.SessionOptions): Promise<InferenceSession> {
  return InferenceSession.create(model, options);
}

export function runSession(
  session: InferenceSession,
  feeds: Readonly<Record<string, Tensor>>,
  fetches: Readonly<Record<string, Tensor | null>>,
): Promise<Record<string, Tensor>> {
  return session.run(feeds, fetches);
}

({ CPU_PROVIDER, INSTALL_HINT, getRuntimeVersion, listDevices, createSession, runSession }) satisfies OnnxRuntime;
