import type { ErrorCode } from "../../core/errors.js";
import type { TypedArray } from "../tensor/dtype.js";
import type { Tensor } from "../tensor/tensor.js";
import type { BufferView } from "./buffer-view.js";
import type { WeightLocation } from "../graph/compile.js";
import type { GpuProgram } from "../gpu/program.js";
import type { CpuKernelCall, KernelResult } from "./kernels/run-kernel.js";
import type { GpuCounters } from "./webgpu/gpu-counters.js";

export interface SessionConfig {
  readonly threads: number;
  /** Folder of the weight files named in the graph. */
  readonly folder: string | undefined;
  /** In-memory weight files, by the names in the graph. */
  readonly buffers: readonly { readonly name: string; readonly data: Uint8Array }[];
  readonly packWeights: boolean;
}

type NamedValues<T> = readonly (readonly [name: string, value: T])[];

export interface RunRequest {
  readonly kind: "run";
  readonly session: number;
  /** Ids of bindings; `feeds` and `fetches` are added to them. */
  readonly bindings: readonly number[];
  readonly feeds: NamedValues<Tensor | BufferView>;
  /** Outputs and the views that receive them; undefined returns an output by value. */
  readonly fetches: NamedValues<BufferView | undefined>;
}

export type WorkerRequest =
  | {
      readonly kind: "create";
      readonly session: number;
      readonly model: Uint8Array;
      readonly settings: SessionConfig;
    }
  /**
   * Writes a graph, its weights and their packed forms to two files; `saved` is their path without
   * ".onnx" and ".bin".
   */
  | {
      readonly kind: "pack";
      readonly model: Uint8Array;
      readonly settings: SessionConfig;
      readonly saved: { readonly folder: string; readonly name: string };
    }
  /** Creates a session of a program for the GPU. */
  | {
      readonly kind: "createProgram";
      readonly session: number;
      readonly program: GpuProgram;
      readonly weights: NamedValues<WeightLocation>;
      readonly folder: string | undefined;
      readonly buffers: SessionConfig["buffers"];
    }
  /** Returns whether sums of products of unsigned by signed bytes are wrong on this processor. */
  | { readonly kind: "detectInt8Overflow" }
  | { readonly kind: "release"; readonly session: number }
  | RunRequest
  | {
      readonly kind: "bind";
      readonly binding: number;
      readonly feeds: NamedValues<BufferView>;
      readonly fetches: NamedValues<BufferView>;
    }
  | { readonly kind: "unbind"; readonly binding: number }
  | { readonly kind: "allocate"; readonly buffer: number; readonly bytes: number }
  | { readonly kind: "free"; readonly buffer: number }
  | { readonly kind: "write"; readonly view: BufferView; readonly data: TypedArray }
  | { readonly kind: "read"; readonly view: BufferView }
  | { readonly kind: "kernel"; readonly call: CpuKernelCall }
  /** Returns what a GPU has done so far. */
  | { readonly kind: "counters" }
  /** Runs requests in order and returns the last one's result. */
  | { readonly kind: "sequence"; readonly requests: readonly WorkerRequest[] };

export interface WorkerMessage {
  readonly id: number;
  readonly request: WorkerRequest;
}

/** Result of a request: outputs by name, one tensor, a kernel's result, an answer or nothing. */
export type WorkerResult = Record<string, Tensor> | Tensor | KernelResult | GpuReport | boolean;

/** The GPU that a worker has opened, and what it has done. */
export interface GpuReport {
  readonly adapter: string;
  /** Optional features of WebGPU that the adapter has, such as "shader-f16". */
  readonly features: readonly string[];
  /** Largest buffer that a kernel can read, in bytes. */
  readonly maxBufferBytes: number;
  readonly counters: GpuCounters;
}

export type WorkerResponse =
  | { readonly id: number; readonly ok: true; readonly result: WorkerResult }
  /** `code`: undefined for an error of the library that computes. */
  | { readonly id: number; readonly ok: false; readonly message: string; readonly code: ErrorCode | undefined };
