import type { InferenceSession, Tensor } from "onnxruntime-node";

/**
 * What differs between the builds of ONNX Runtime for Node and for browsers. `#onnxruntime` is one
 * of them.
 */
export interface OnnxRuntime {
  /** Name of the execution provider of the CPU. */
  readonly CPU_PROVIDER: string;
  /** Returns the version of the library. */
  getRuntimeVersion(): string;
  createSession(model: Uint8Array, options: InferenceSession.SessionOptions): Promise<InferenceSession>;
  /**
   * Runs a session; outputs with a tensor in `fetches` are written to its data, the others are
   * returned.
   */
  runSession(
    session: InferenceSession,
    feeds: Readonly<Record<string, Tensor>>,
    fetches: Readonly<Record<string, Tensor | null>>,
  ): Promise<Record<string, Tensor>>;
}
