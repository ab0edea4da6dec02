import type { TypedArray } from "../tensor/dtype.js";
import type { Tensor } from "../tensor/tensor.js";
import type { View } from "./buffer.js";
import type { KernelCall, KernelResult } from "./kernels.js";

export interface SessionSettings {
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

type Named<T> = readonly (readonly [name: string, value: T])[];

export interface RunRequest {
  readonly kind: "run";
  readonly session: number;
  /** Sets of inputs and outputs that were bound before; what is given here comes on top. */
  readonly bindings: readonly number[];
  readonly feeds: Named<Tensor | View>;
  /** Outputs and where they are written; `undefined` returns one by value. */
  readonly fetches: Named<View | undefined>;
}

export type Request =
  | {
      readonly kind: "create";
      readonly session: number;
      readonly model: Uint8Array;
      readonly settings: SessionSettings;
    }
  | { readonly kind: "release"; readonly session: number }
  | RunRequest
  | { readonly kind: "bind"; readonly binding: number; readonly feeds: Named<View>; readonly fetches: Named<View> }
  | { readonly kind: "unbind"; readonly binding: number }
  | { readonly kind: "allocate"; readonly buffer: number; readonly bytes: number }
  | { readonly kind: "free"; readonly buffer: number }
  | { readonly kind: "write"; readonly view: View; readonly data: TypedArray }
  | { readonly kind: "read"; readonly view: View }
  | { readonly kind: "kernel"; readonly call: KernelCall }
  /** Several in a row; gives the last one's result. */
  | { readonly kind: "sequence"; readonly requests: readonly Request[] };

export interface Envelope {
  readonly id: number;
  readonly request: Request;
}

/** What a request gives back: outputs by name, one tensor, a kernel's result or nothing. */
export type Result = Record<string, Tensor> | Tensor | KernelResult;

export type Response =
  | { readonly id: number; readonly ok: true; readonly result: Result }
  | { readonly id: number; readonly ok: false; readonly message: string };
