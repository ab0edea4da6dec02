// oxlint-disable-next-line import/no-unassigned-import -- It must come before ONNX Runtime is loaded.
import "./disable-telemetry.js";
import { assets, fs, system } from "#platform";
import { InferenceSession, listSupportedBackends, Tensor } from "onnxruntime-node";
import { decodeUtf8 } from "../../../core/bytes.js";
export { InferenceSession, Tensor };
/** Name of the execution provider of the CPU. */
export const CPU_PROVIDER = "cpu";
export const INSTALL_HINT = "It comes with onnxruntime-node; reinstall the package.";
const MANIFEST = "onnxruntime-node/package.json";
export function getRuntimeVersion() {
    const manifest = JSON.parse(decodeUtf8(fs.readBytesSync(assets.resolve(MANIFEST))));
    return manifest.version;
}
export function listDevices() {
    const backends = new Set(listSupportedBackends().map(({ name }) => name));
    return [
        ...(backends.has("cuda") && isCudaInstalled() ? ["cuda"] : []),
        ...(backends.has("cpu") ? ["cpu"] : []),
    ];
}
/** ONNX Runtime lists CUDA wherever it is supported; its libraries are a separate download. */
function isCudaInstalled() {
    const root = fs.dirname(assets.resolve(MANIFEST));
    const library = system.os === "win32" ? "onnxruntime_providers_cuda.dll" : "libonnxruntime_providers_cuda.so";
    return fs.existsSync(fs.join(root, "bin", "napi-v6", system.os, system.arch, library));
}
export function createSession(model, options) {
    return InferenceSession.create(model, options);
}
export function runSession(session, feeds, fetches) {
    return session.run(feeds, fetches);
}
({ CPU_PROVIDER, INSTALL_HINT, getRuntimeVersion, listDevices, createSession, runSession });
