import { env, InferenceSession, Tensor } from "onnxruntime-web/wasm";
import type { OnnxRuntime } from "./onnxruntime.js";

export { InferenceSession, Tensor };

export const CPU_PROVIDER = "wasm";

export const getRuntimeVersion = (): string => env.versions.web ?? env.versions.common;

/** Whether the page may share memory between threads (headers COOP and COEP). */
const isolated = (globalThis as { crossOriginIsolated?: boolean }).crossOriginIsolated === true;

/** Creates a session. WebAssembly starts with the first one, whose threads serve all. */
export function createSession(model: Uint8Array, options: InferenceSession.SessionOptions): Promise<InferenceSession> {
  env.wasm.numThreads = isolated ? (options.intraOpNumThreads ?? 1) : 1;
  return InferenceSession.create(model, options);
}

export async function runSession(
  session: InferenceSession,
  feeds: Readonly<Record<string, Tensor>>,
  fetches: Readonly<Record<string, Tensor | null>>,
): Promise<Record<string, Tensor>> {
  const results = (await session.run(feeds, Object.keys(fetches))) as Record<string, Tensor>;
  // WebAssembly computes in its own memory and does not copy to tensors that are given for outputs.
  for (const [name, target] of Object.entries(fetches))
    if (target !== null) (target.data as Float32Array).set(results[name].data as Float32Array);
  return results;
}

({ CPU_PROVIDER, getRuntimeVersion, createSession, runSession }) satisfies OnnxRuntime;
