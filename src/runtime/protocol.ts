import type { DType, TypedArray } from "../tensor/dtype.js";
import type { KernelCall } from "./kernels.js";

/** A tensor that crosses threads by value. */
export interface WireTensor {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly data: TypedArray;
}

/** A tensor that lies in a buffer of the worker; `offset` counts elements. */
export interface WireView {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly buffer: number;
  readonly offset: number;
}

export interface SessionSettings {
  /** Execution providers in ONNX Runtime's names, best first. */
  readonly providers: readonly string[];
  readonly threads: number;
  /** The folder in which the weights' files lie, by the names that the graph uses. */
  readonly folder: string | undefined;
  /** Weights' files that are in memory, by the names that the graph uses. */
  readonly buffers: readonly { readonly name: string; readonly data: Uint8Array }[];
  /** Where to write a profile of each operation, for finding out where the time goes. */
  readonly profile: string | undefined;
}

type Named<T> = readonly (readonly [name: string, value: T])[];

export type Request =
  | {
      readonly kind: "create";
      readonly session: number;
      readonly model: Uint8Array;
      readonly settings: SessionSettings;
    }
  | {
      readonly kind: "run";
      readonly session: number;
      readonly feeds: Named<WireTensor | WireView>;
      /** Outputs and where they are written; `undefined` returns one by value. */
      readonly fetches: Named<WireView | undefined>;
    }
  | { readonly kind: "release"; readonly session: number }
  | { readonly kind: "allocate"; readonly buffer: number; readonly bytes: number }
  | { readonly kind: "free"; readonly buffer: number }
  | { readonly kind: "write"; readonly view: WireView; readonly data: TypedArray }
  | { readonly kind: "read"; readonly view: WireView }
  | { readonly kind: "kernel"; readonly call: KernelCall };

export interface Envelope {
  readonly id: number;
  readonly request: Request;
}

/** What a request gives back: outputs by name, one tensor, a number or nothing. */
export type Result = Record<string, WireTensor> | WireTensor | number | undefined;

export type Response =
  | { readonly id: number; readonly ok: true; readonly result: Result }
  | { readonly id: number; readonly ok: false; readonly message: string };
