import type { ElementFormat, KernelOperand, KernelSource } from "../../gpu/program.js";

/** How the operands of a dispatch are bound: operands in one buffer share its binding. */
export interface BindingPattern {
  /** Bindings of each operand of each part: several for a weight that is larger than one buffer. */
  readonly slots: readonly (readonly (readonly number[])[])[];
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

/** Words of the parameters of some parts; see `listParameters`. */
export function countParameterWords(kernels: readonly KernelSource[]): number {
  return kernels.reduce((sum, { operands, parameterCount }) => sum + 1 + operands.length + parameterCount, 0);
}

/**
 * Returns the parameters of a dispatch: for each part, the number of workgroups up to its end, the
 * start of each operand, and its own parameters.
 */
export function listParameters(
  parts: readonly {
    readonly groups: number;
    readonly starts: readonly number[];
    readonly parameters: readonly number[];
  }[],
): number[] {
  let end = 0;
  return parts.flatMap(({ groups, starts, parameters }) => [(end += groups), ...starts, ...parameters]);
}

/** Bindings of an operand, and the words of each but the last. */
interface OperandSlots {
  readonly slots: readonly number[];
  readonly pieceWords: number;
}

function operandFunctions(
  { name, format, isWritten }: KernelOperand,
  start: number,
  { slots, pieceWords }: OperandSlots,
): string {
  const [type, load] = LOADS[format];
  const lines: string[] = [];
  let own = (code: string) => code.replaceAll("m[", `m${slots[0]}[`).replaceAll("start", word(start));
  if (slots.length > 1) {
    const cases = slots.map((slot, i) => `case ${i}u: { return m${slot}[at - ${i * pieceWords}u]; }`);
    lines.push(
      `fn word_of_${name}(at: u32) -> u32 { switch at / ${pieceWords}u { ${cases.join(" ")} default: { return 0u; } } }`,
    );
    own = (code) => code.replaceAll(/m\[([^\]]*)\]/gu, `word_of_${name}($1)`).replaceAll("start", word(start));
  }
  lines.push(`fn ${name}(i: u32) -> ${type} { return ${own(load)}; }`);
  if (isWritten) {
    const [storedType, store] = STORES[format];
    lines.push(`fn set_${name}(i: u32, value: ${storedType}) { ${own("m[start + i]")} = ${store}; }`);
  }
  return lines.join("\n");
}

const WORKGROUP_VARIABLE = /var<workgroup> (\w+): ([^;]+);/gu;
const DECLARED_FUNCTION = /\bfn (\w+)\(/gu;

/** Declarations and the body of a part, with names that no other part has. */
interface PartCode {
  readonly declarations: string;
  readonly body: string;
}

/** Renames what parts declare; workgroup memory is shared by parts that declare it alike. */
class PartWriter {
  private readonly shared = new Map<string, string>();

  constructor(private readonly pieceWords: number) {}

  write(kernel: KernelSource, part: number, firstWord: number, slots: readonly (readonly number[])[]): PartCode {
    const { operands, declarations, body } = kernel;
    const prefix = part === 0 ? "" : `part${part}_`;
    const names = new Map<string, string>();
    for (const { name } of operands) {
      names.set(name, `${prefix}${name}`);
      names.set(`set_${name}`, `set_${prefix}${name}`);
    }
    const lines: string[] = [];
    for (const [, name, type] of declarations.matchAll(WORKGROUP_VARIABLE)) {
      const key = `${name}: ${type}`;
      const known = this.shared.get(key);
      names.set(name, known ?? `${prefix}${name}`);
      if (known === undefined) lines.push(`var<workgroup> ${prefix}${name}: ${type};`);
      this.shared.set(key, known ?? `${prefix}${name}`);
    }
    for (const [, name] of declarations.matchAll(DECLARED_FUNCTION)) names.set(name, `${prefix}${name}`);
    const own = (code: string) =>
      code
        .replaceAll(/\$(\d+)/gu, (_, k: string) => word(firstWord + 1 + operands.length + Number(k)))
        .replaceAll(/\b[A-Za-z_]\w*\b/gu, (name) => names.get(name) ?? name);
    const functions = operands.map((operand, index) =>
      operandFunctions({ ...operand, name: `${prefix}${operand.name}` }, firstWord + 1 + index, {
        slots: slots[index],
        pieceWords: this.pieceWords,
      }),
    );
    return {
      declarations: [...functions, ...lines, own(declarations.replaceAll(WORKGROUP_VARIABLE, ""))].join("\n"),
      body: own(body),
    };
  }
}

/**
 * Returns the WGSL of one dispatch of kernels whose operands are bound in a pattern; the buffers of
 * an operand with several have `pieceWords` words.
 */
export function assembleShader(
  kernels: readonly KernelSource[],
  { slots, written }: BindingPattern,
  pieceWords: number,
): string {
  const vectors = Math.ceil(countParameterWords(kernels) / 4);
  const writer = new PartWriter(pieceWords);
  let firstWord = 0;
  const parts = kernels.map((kernel, part) => {
    const end = word(firstWord);
    const code = writer.write(kernel, part, firstWord, slots[part]);
    firstWord += countParameterWords([kernel]);
    return { ...code, end };
  });
  const functions = parts.map(({ body }, i) => `fn run_part${i}(group: u32, thread: u32) {\n${body}\n}`);
  const branches = parts.map(
    ({ end }, i) => `if (group < ${end}) { run_part${i}(group${i === 0 ? "" : ` - ${parts[i - 1].end}`}, thread); }`,
  );
  return [
    `@group(0) @binding(0) var<uniform> parameters: array<vec4<u32>, ${vectors}>;`,
    ...written.map(
      (isWritten, slot) =>
        `@group(0) @binding(${slot + 1}) var<storage, ${isWritten ? "read_write" : "read"}> m${slot}: array<u32>;`,
    ),
    ...parts.map(({ declarations }) => declarations),
    ...functions,
    `@compute @workgroup_size(${kernels[0].threads}) fn main(@builtin(workgroup_id) group_id: vec3u, @builtin(num_workgroups) group_counts: vec3u, @builtin(local_invocation_index) thread: u32) {`,
    `let group = group_id.x + group_id.y * group_counts.x;`,
    branches.join(" else "),
    "}",
  ].join("\n");
}
