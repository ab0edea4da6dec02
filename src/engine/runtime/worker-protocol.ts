import type { TypedArray } from "../tensor/dtype.js";
import type { Tensor } from "../tensor/tensor.js";
import type { BufferView } from "./buffer-view.js";
import type { KernelCall, KernelResult } from "./kernels/run-kernel.js";

export interface SessionConfig {
  /** Execution providers in ONNX Runtime's names, best first. */
  readonly providers: readonly string[];
  readonly threads: number;
  /** The folder in which the weights' files lie, by the names that the graph uses. */
  readonly folder: string | undefined;
  /** Weights' files that are in memory, by the names that the graph uses. */
  readonly buffers: readonly { readonly name: string; readonly data: Uint8Array }[];
  readonly packWeights: boolean;
  /** Where to write a profile of each operation, for finding out where the time goes. */
  readonly profile: string | undefined;
}

type NamedValues<T> = readonly (readonly [name: string, value: T])[];

export interface RunRequest {
  readonly kind: "run";
  readonly session: number;
  /** Sets of inputs and outputs that were bound before; what is given here comes on top. */
  readonly bindings: readonly number[];
  readonly feeds: NamedValues<Tensor | BufferView>;
  /** Outputs and where they are written; `undefined` returns one by value. */
  readonly fetches: NamedValues<BufferView | undefined>;
}

export type WorkerRequest =
  | {
      readonly kind: "create";
      readonly session: number;
      readonly model: Uint8Array;
      readonly settings: SessionConfig;
    }
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
  | { readonly kind: "kernel"; readonly call: KernelCall }
  /** Several in a row; gives the last one's result. */
  | { readonly kind: "sequence"; readonly requests: readonly WorkerRequest[] };

export interface WorkerMessage {
  readonly id: number;
  readonly request: WorkerRequest;
}

/** What a request gives back: outputs by name, one tensor, a kernel's result or nothing. */
export type WorkerResult = Record<string, Tensor> | Tensor | KernelResult;

export type WorkerResponse =
  | { readonly id: number; readonly ok: true; readonly result: WorkerResult }
  | { readonly id: number; readonly ok: false; readonly message: string };
