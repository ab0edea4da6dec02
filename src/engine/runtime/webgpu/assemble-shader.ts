import type { ElementFormat, KernelOperand, KernelSource } from "../../gpu/program.js";

/** How a kernel's operands are bound: operands in one buffer share its binding. */
export interface BindingPattern {
  /** Binding of each operand. */
  readonly slots: readonly number[];
  /** Whether each binding is written. */
  readonly written: readonly boolean[];
}

/** WGSL that loads element `i` from word array `m`, counted from the operand's start. */
const LOADS: Readonly<Record<ElementFormat, readonly [type: string, code: string]>> = {
  f32: ["f32", "bitcast<f32>(m[start + i])"],
  i32: ["i32", "bitcast<i32>(m[start + i])"],
  bool: ["bool", "m[start + i] != 0u"],
  bool8: ["bool", "((m[start + i / 4u] >> (i % 4u * 8u)) & 255u) != 0u"],
  f16: ["f32", "unpack2x16float(m[start + i / 2u])[i % 2u]"],
  bf16: ["f32", "bitcast<f32>((m[start + i / 2u] >> (i % 2u * 16u)) << 16u)"],
  i8: ["i32", "extractBits(bitcast<i32>(m[start + i / 4u]), i % 4u * 8u, 8u)"],
  u8: ["i32", "i32((m[start + i / 4u] >> (i % 4u * 8u)) & 255u)"],
  i4: ["i32", "extractBits(bitcast<i32>(m[start + i / 8u]), i % 8u * 4u, 4u)"],
  u4: ["i32", "i32((m[start + i / 8u] >> (i % 8u * 4u)) & 15u)"],
};

const STORES: Readonly<Record<string, readonly [type: string, code: string]>> = {
  f32: ["f32", "bitcast<u32>(value)"],
  i32: ["i32", "bitcast<u32>(value)"],
  bool: ["bool", "select(0u, 1u, value)"],
};

/** WGSL of word `index` of the parameters. */
function word(index: number): string {
  return `parameters[${index >> 2}].${"xyzw"[index & 3]}`;
}

/**
 * Words of a kernel's parameters: the number of workgroups, the start of each operand, and its own.
 */
export function countParameterWords({ operands, parameterCount }: KernelSource): number {
  return 1 + operands.length + parameterCount;
}

function operandFunctions({ name, format, isWritten }: KernelOperand, index: number, slot: number): string {
  const [type, load] = LOADS[format];
  const own = (code: string) => code.replaceAll("m[", `m${slot}[`).replaceAll("start", word(1 + index));
  const lines = [`fn ${name}(i: u32) -> ${type} { return ${own(load)}; }`];
  if (isWritten) {
    const [storedType, store] = STORES[format];
    lines.push(`fn set_${name}(i: u32, value: ${storedType}) { ${own("m[start + i]")} = ${store}; }`);
  }
  return lines.join("\n");
}

/** Returns the WGSL of a kernel whose operands are bound in a pattern. */
export function assembleShader(kernel: KernelSource, { slots, written }: BindingPattern): string {
  const { operands, threads, declarations, body } = kernel;
  const own = (code: string) => code.replaceAll(/\$(\d+)/gu, (_, k: string) => word(1 + operands.length + Number(k)));
  const vectors = Math.ceil(countParameterWords(kernel) / 4);
  return [
    `@group(0) @binding(0) var<uniform> parameters: array<vec4<u32>, ${vectors}>;`,
    ...written.map(
      (isWritten, slot) =>
        `@group(0) @binding(${slot + 1}) var<storage, ${isWritten ? "read_write" : "read"}> m${slot}: array<u32>;`,
    ),
    ...operands.map((operand, index) => operandFunctions(operand, index, slots[index])),
    own(declarations),
    `@compute @workgroup_size(${threads}) fn main(@builtin(workgroup_id) group_id: vec3u, @builtin(num_workgroups) group_counts: vec3u, @builtin(local_invocation_index) thread: u32) {`,
    `let group = group_id.x + group_id.y * group_counts.x;`,
    `if (group >= ${word(0)}) { return; }`,
    own(body),
    "}",
  ].join("\n");
}
