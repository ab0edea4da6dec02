import type { GpuPart, GpuProgram, GpuStep } from "./program.js";

/** Most parts of a dispatch, as each adds its code to the kernel. */
const MAX_PARTS = 8;
/**
 * Dispatches back to which a part is moved: one that is computed much earlier than it is read takes
 * memory until then.
 */
const WINDOW = 8;
/**
 * Times that a combination of kernels must occur: it is compiled as a whole, which takes drivers
 * longer than its dispatches save. Those of a layer occur once for each.
 */
const MIN_OCCURRENCES = 3;
/** Parts of a combination that may be rare. */
const FEW_PARTS = 3;

/** Values that a part reads and writes. */
interface Access {
  readonly reads: ReadonlySet<number>;
  readonly writes: ReadonlySet<number>;
}

/**
 * Joins steps that do not depend on each other to dispatches of several parts. Steps that compute
 * outputs follow what they read as closely as they can, which then leaves memory earlier.
 */
export function mergeSteps({ kernels, steps, outputs }: Pick<GpuProgram, "kernels" | "steps" | "outputs">): GpuStep[] {
  const accessOf = ({ calls }: GpuPart): Access => {
    const operands = calls.flatMap(({ kernel, values }) =>
      values.map((value, i) => ({ value, isWritten: kernels[kernel].operands[i].isWritten })),
    );
    const list = (isWritten: boolean) =>
      new Set(operands.flatMap((each) => (each.isWritten === isWritten ? [each.value] : [])));
    return { reads: list(false), writes: list(true) };
  };
  const accesses = new Map(steps.flatMap(({ parts }) => parts.map((part) => [part, accessOf(part)] as const)));
  const merged: { parts: GpuPart[]; threads: number; block: number | undefined }[] = [];
  const [lastWrites, lastReads] = [new Map<number, number>(), new Map<number, number>()];
  const last = (map: Map<number, number>, values: ReadonlySet<number>) =>
    Math.max(-1, ...[...values].map((value) => map.get(value) ?? -1));
  const record = (map: Map<number, number>, values: ReadonlySet<number>, index: number) => {
    for (const value of values) map.set(value, Math.max(index, map.get(value) ?? -1));
  };
  for (const { parts, block } of advanceOutputs(steps, accesses, outputs)) {
    for (const part of parts) {
      const { reads, writes } = accesses.get(part)!;
      const threads = kernels[part.calls[0].kernel].threads;
      const earliest = 1 + Math.max(last(lastWrites, reads), last(lastWrites, writes), last(lastReads, writes));
      const first = Math.max(earliest, merged.length - WINDOW);
      const found = merged.findIndex(
        (step, i) =>
          i >= first && step.block === undefined && step.threads === threads && step.parts.length < MAX_PARTS,
      );
      const index = found < 0 || block !== undefined ? merged.push({ parts: [], threads, block }) - 1 : found;
      merged[index].parts.push(part);
      record(lastWrites, writes, index);
      record(lastReads, reads, index);
    }
  }
  return splitRare(merged.map(({ parts, block }) => ({ parts, block })));
}

/** Gives each part of a rare combination of kernels its own dispatch. */
function splitRare(steps: readonly GpuStep[]): GpuStep[] {
  const combinationOf = ({ parts }: GpuStep) =>
    parts.map(({ calls }) => calls.map(({ kernel }) => kernel).join("/")).join();
  const occurrences = new Map<string, number>();
  for (const step of steps) {
    const combination = combinationOf(step);
    occurrences.set(combination, (occurrences.get(combination) ?? 0) + 1);
  }
  return steps.flatMap((step) =>
    step.parts.length <= FEW_PARTS || occurrences.get(combinationOf(step))! >= MIN_OCCURRENCES
      ? [step]
      : step.parts.map((part) => ({ parts: [part], block: step.block })),
  );
}

/** Moves steps that only compute outputs to where all that they read has been computed. */
function advanceOutputs(
  steps: readonly GpuStep[],
  accesses: ReadonlyMap<GpuPart, Access>,
  outputs: GpuProgram["outputs"],
): GpuStep[] {
  const accessesOf = ({ parts }: GpuStep) => parts.map((part) => accesses.get(part)!);
  const uses = new Map<number, number>();
  for (const { reads, writes } of steps.flatMap(accessesOf))
    for (const value of new Set([...reads, ...writes])) uses.set(value, (uses.get(value) ?? 0) + 1);
  const outputValues = new Set(outputs.map(({ value }) => value));
  const isOutput = (value: number) => outputValues.has(value) && uses.get(value) === 1;
  const written = new Map<number, number>();
  const places = steps.map((step, i) => {
    const all = accessesOf(step);
    const reads = all.flatMap((each) => [...each.reads]);
    const writes = all.flatMap((each) => [...each.writes]);
    for (const value of writes) written.set(value, i);
    if (step.block !== undefined || !writes.every(isOutput)) return i;
    return Math.max(-1, ...reads.map((value) => written.get(value) ?? -1)) + 0.5;
  });
  // A repeated block is not interrupted.
  const ends = places.map((place) => {
    let at = Math.floor(place);
    while (!Number.isInteger(place) && at + 1 < steps.length && at >= 0 && isSameBlock(steps[at], steps[at + 1])) at++;
    return Number.isInteger(place) ? place : at + 0.5;
  });
  return steps
    .map((step, i) => ({ step, place: ends[i], i }))
    .sort((a, b) => a.place - b.place || a.i - b.i)
    .map(({ step }) => step);
}

function isSameBlock(a: GpuStep, b: GpuStep): boolean {
  return a.block !== undefined && a.block === b.block;
}
