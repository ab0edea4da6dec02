import { describe, expect, it } from "vitest";
import { RandomStream } from "../../core/random/random-stream.js";
import { mergeSteps } from "./merge-steps.js";
import type { GpuPart, GpuProgram, GpuStep, KernelSource } from "./program.js";

type Merged = Parameters<typeof mergeSteps>[0];

/** A program whose steps read and write random values, each by another kernel. */
function drawProgram(random: RandomStream): Merged {
  const whole = (limit: number) => Math.floor(random.random() * limit);
  const kernels: KernelSource[] = [];
  const valueCount = 4 + whole(20);
  const outputs = Array.from({ length: 3 }, (_, i) => ({ value: valueCount + i })) as unknown as GpuProgram["outputs"];
  const steps: GpuStep[] = [];
  let block: number | undefined;
  let blocks = 0;
  for (let i = 0; i < 60; i++) {
    if (random.random() < 0.1) block = block === undefined ? blocks++ : undefined;
    const values = Array.from({ length: 1 + whole(4) }, () => whole(valueCount + 3));
    const distinct = [...new Set(values)];
    const operands = distinct.map((_, k) => ({
      name: `v${k}`,
      isWritten: k === 0,
    })) as unknown as KernelSource["operands"];
    const kernel = kernels.push({ operands, threads: [64, 128][whole(2)] } as KernelSource) - 1;
    steps.push({ parts: [{ calls: [{ kernel, values: distinct }] }], block } as unknown as GpuStep);
  }
  return { kernels, steps, outputs };
}

/** Values after all steps, each computed from what it reads and its own index. */
function evaluate(kernels: readonly KernelSource[], steps: readonly GpuStep[], order: ReadonlyMap<GpuPart, number>) {
  const memory = new Map<number, string>();
  for (const { parts } of steps) {
    const before = new Map(memory);
    for (const part of parts) {
      const [{ kernel, values }] = part.calls;
      const read = values.map((value) => before.get(value) ?? `${value}`);
      values.forEach((value, i) => {
        if (!kernels[kernel].operands[i].isWritten) return;
        let hash = order.get(part)!;
        for (const character of read.join()) hash = Math.imul(hash ^ character.charCodeAt(0), 0x01000193) >>> 0;
        memory.set(value, `${hash}`);
      });
    }
  }
  return memory;
}

describe("mergeSteps", () => {
  it("computes what the steps compute one after another, with parts of one workgroup size", () => {
    const random = new RandomStream(4);
    let saved = 0;
    for (let round = 0; round < 200; round++) {
      const program = drawProgram(random);
      const order = new Map(program.steps.flatMap(({ parts }) => parts).map((part, i) => [part, i]));
      const merged = mergeSteps(program);
      expect(merged.flatMap(({ parts }) => parts).length).toBe(order.size);
      expect(evaluate(program.kernels, merged, order)).toEqual(evaluate(program.kernels, program.steps, order));
      for (const { parts } of merged)
        expect(new Set(parts.map(({ calls }) => program.kernels[calls[0].kernel].threads)).size).toBe(1);
      const blocks = merged.map(({ block }) => block);
      const starts = blocks.filter((block, i) => block !== undefined && block !== blocks[i - 1]);
      expect(new Set(starts).size).toBe(starts.length);
      saved += order.size - merged.length;
    }
    expect(saved).toBeGreaterThan(1000);
  });
});
