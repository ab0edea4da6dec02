import { describe, expect, it } from "vitest";
import { RandomStream } from "../../core/random/random-stream.js";
import { mergeSteps } from "./merge-steps.js";
import type { GpuPart, GpuProgram, GpuStep, KernelSource } from "./program.js";

type Merged = Parameters<typeof mergeSteps>[0];

/** A program whose steps read and write random values, by a few kernels. */
function drawProgram(random: RandomStream): Merged {
  const whole = (limit: number) => Math.floor(random.random() * limit);
  const kernels = Array.from(
    { length: 3 },
    (_, i) =>
      ({
        operands: Array.from({ length: 1 + whole(4) }, (_, k) => ({ name: `v${k}`, isWritten: k === 0 })),
        threads: i === 0 ? 64 : 128,
      }) as unknown as KernelSource,
  );
  const valueCount = 4 + whole(20);
  const outputs = Array.from({ length: 3 }, (_, i) => ({ value: valueCount + i })) as unknown as GpuProgram["outputs"];
  const steps: GpuStep[] = [];
  let block: number | undefined;
  let blocks = 0;
  for (let i = 0; i < 150; i++) {
    if (random.random() < 0.1) block = block === undefined ? blocks++ : undefined;
    const kernel = whole(kernels.length);
    const values = new Set<number>();
    while (values.size < kernels[kernel].operands.length) values.add(whole(valueCount + 3));
    steps.push({ parts: [{ calls: [{ kernel, values: [...values] }] }], block } as unknown as GpuStep);
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
      const combinations = merged.map(({ parts }) => parts.map(({ calls }) => calls[0].kernel).join());
      for (const combination of new Set(combinations))
        expect(
          combination.split(",").length <= 3 || combinations.filter((each) => each === combination).length >= 3,
        ).toBe(true);
      saved += order.size - merged.length;
    }
    expect(saved).toBeGreaterThan(1000);
  });
});
