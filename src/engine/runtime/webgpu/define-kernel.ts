import type { ElementFormat, KernelSource } from "../../gpu/program.js";

type OperandSpec = readonly [name: string, mode: "read" | "write", format?: ElementFormat];

/**
 * A kernel with named operands and parameters; the code has `group` and `thread`, and parameter k
 * as `$k`.
 */
export function defineKernel(
  label: string,
  threads: number,
  operands: readonly OperandSpec[],
  body: string,
  declarations = "",
): KernelSource {
  const parameterCount = Math.max(0, ...[...body.matchAll(/\$(\d+)/gu)].map(([, k]) => Number(k) + 1));
  return {
    label,
    threads,
    parameterCount,
    declarations,
    body,
    operands: operands.map(([name, mode, format = "f32"]) => ({
      name,
      format,
      isWritten: mode === "write",
    })),
  };
}
