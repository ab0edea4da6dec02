import { assets, fs } from "#platform";
import { InferenceSession, Tensor } from "onnxruntime-node";
import { decodeUtf8 } from "../../../core/bytes.js";
import type { OnnxRuntime } from "./onnxruntime.js";

export { InferenceSession, Tensor };

/** Name of the execution provider of the CPU. */
export const CPU_PROVIDER = "cpu";

const MANIFEST = "onnxruntime-node/package.json";

export function getRuntimeVersion(): string {
  const manifest = JSON.parse(decodeUtf8(fs.readBytesSync(assets.resolve(MANIFEST)))) as { version: string };
  return manifest.version;
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

({ CPU_PROVIDER, getRuntimeVersion, createSession, runSession }) satisfies OnnxRuntime;
