import type { KernelWriter } from "./kernel-writer.js";

export type Reduction = "sum" | "max";

/** WGSL that combines two values. */
export function combine(reduction: Reduction, a: string, b: string): string {
  return reduction === "sum" ? `${a} + ${b}` : `max(${a}, ${b})`;
}

/** WGSL of the value that changes no other: 0, or the lowest number. */
export function neutral(reduction: Reduction): string {
  return reduction === "sum" ? "0.0" : "-3.40282346638528859812e+38";
}

/** Declares the memory in which threads of a workgroup combine values. */
export function declareReductions(writer: KernelWriter, threads: number): void {
  writer.declare(`var<workgroup> combined: array<f32, ${threads}>;`);
}

/**
 * Combines a value of each thread in a tree, so that rounding errors stay small; returns the name
 * of the result.
 */
export function reduceInGroup(writer: KernelWriter, reduction: Reduction, value: string, threads: number): string {
  writer.line(`combined[thread] = ${value};`);
  writer.line("workgroupBarrier();");
  writer.line(`for (var step = ${threads / 2}u; step > 0u; step /= 2u) {`);
  writer.line(
    `if (thread < step) { combined[thread] = ${combine(reduction, "combined[thread]", "combined[thread + step]")}; }`,
  );
  writer.line("workgroupBarrier(); }");
  const result = writer.assign("f32", "combined[0]");
  writer.line("workgroupBarrier();");
  return result;
}
