import type { DType } from "../tensor/dtype.js";

/** Storage of a value's elements in 32-bit words: one each, or packed as in the weight files. */
export type ElementFormat = "f32" | "i32" | "bool" | "bool8" | "f16" | "bf16" | "i8" | "u8" | "i4" | "u4";

/** Elements in a 32-bit word. */
export const ELEMENTS_PER_WORD: Readonly<Record<ElementFormat, number>> = {
  f32: 1,
  i32: 1,
  bool: 1,
  bool8: 4,
  f16: 2,
  bf16: 2,
  i8: 4,
  u8: 4,
  i4: 8,
  u4: 8,
};

/** Format in which values of a type are fed and stored as weights. 64-bit integers are narrowed. */
export const STORED_FORMATS: Readonly<Record<DType, ElementFormat>> = {
  float32: "f32",
  float16: "f16",
  bfloat16: "bf16",
  int64: "i32",
  int32: "i32",
  int8: "i8",
  uint8: "u8",
  int4: "i4",
  uint4: "u4",
  bool: "bool8",
};

/**
 * A whole number that is known at run time: a constant, or the index of one of the program's
 * dimensions.
 */
export type GpuNumber =
  | number
  | { readonly dim: number }
  /** Quotient of a dimension, rounded up. */
  | { readonly dim: number; readonly ceilDiv: number };

/** Names of the sizes of a repeated block's current chunk: its rows, and the first of them. */
export const CHUNK_ROWS = "chunk rows";
export const CHUNK_START = "chunk start";

/** Where a value comes from. */
export type GpuSource =
  | { readonly kind: "temporary" }
  | { readonly kind: "input"; readonly name: string }
  | { readonly kind: "weight"; readonly name: string }
  | { readonly kind: "constant"; readonly words: Uint32Array };

export interface GpuValue {
  readonly source: GpuSource;
  readonly format: ElementFormat;
  readonly elements: GpuNumber;
}

/** A buffer that a kernel reads or writes, under a name in its WGSL. */
export interface KernelOperand {
  readonly name: string;
  readonly format: ElementFormat;
  readonly isWritten: boolean;
}

/**
 * A WGSL kernel. `NAME(i)` loads an element of an operand, `set_NAME(i, value)` stores one, `$k` is
 * parameter k.
 */
export interface KernelSource {
  /** Kind of the kernel, for counters. */
  readonly label: string;
  readonly operands: readonly KernelOperand[];
  readonly parameterCount: number;
  /** Threads of a workgroup. */
  readonly threads: number;
  /** Declarations outside of functions. */
  readonly declarations: string;
  /** Body of the main function, which has `group` (index of the workgroup) and `thread`. */
  readonly body: string;
}

/** A kernel with its operands, and the rows for which it is chosen. */
export interface KernelCall {
  /** Index of the kernel. */
  readonly kernel: number;
  /** Indices of values, one per operand. */
  readonly values: readonly number[];
  /** Offset of each operand's first element. */
  readonly offsets: readonly GpuNumber[];
  readonly parameters: readonly GpuNumber[];
  /** Factors of the number of workgroups. */
  readonly groups: readonly GpuNumber[];
  /** Applies where this number is at most `upTo`; without, always. */
  readonly rows?: GpuNumber;
  readonly upTo?: number;
}

/** The first call that applies. */
export interface GpuPart {
  readonly calls: readonly KernelCall[];
}

/** One dispatch, of parts that do not depend on each other and have equally large workgroups. */
export interface GpuStep {
  readonly parts: readonly GpuPart[];
  /** Index of the repeated block that the step belongs to. */
  readonly block: number | undefined;
}

/** Consecutive steps that are repeated for each chunk of rows. */
export interface RepeatedBlock {
  readonly rows: GpuNumber;
  readonly chunkRows: number;
}

/** A dimension as a sum of products of named sizes. */
export type DimTerms = readonly (readonly [coefficient: number, names: readonly string[]])[];

/** Threads of a workgroup of most kernels, so that any two of them can share a dispatch. */
export const WORKGROUP_THREADS = 128;

/** Name, type and value of an output. */
export interface GpuOutput {
  readonly name: string;
  readonly dtype: DType;
  readonly value: number;
  readonly shape: readonly GpuNumber[];
}

/**
 * A graph for the GPU, as plain data: values, kernels and the dispatches that compute one from the
 * other.
 */
export interface GpuProgram {
  /** Named sizes and the axis of the input that has them. */
  readonly sizes: readonly { readonly name: string; readonly input: string; readonly axis: number }[];
  readonly dims: readonly DimTerms[];
  readonly values: readonly GpuValue[];
  readonly kernels: readonly KernelSource[];
  readonly steps: readonly GpuStep[];
  readonly blocks: readonly RepeatedBlock[];
  readonly outputs: readonly GpuOutput[];
}
