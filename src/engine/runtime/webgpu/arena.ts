import type { GpuExecutor } from "./gpu-executor.js";
import type { DeviceBuffer } from "./gpu-pipelines.js";

/** Alignment of values, in words. */
const ALIGNMENT = 64;

/** A value that must be in memory from one step to another. */
export interface Lifetime {
  readonly words: number;
  readonly first: number;
  last: number;
}

/** Place of a value in the arena. */
export interface ArenaPlace {
  readonly slab: number;
  readonly start: number;
}

export interface ArenaLayout {
  readonly places: readonly ArenaPlace[];
  /** Words that each slab needs. */
  readonly slabs: readonly number[];
}

/** Free ranges of a slab, by their start. */
interface Slab {
  free: { start: number; words: number }[];
  end: number;
}

/**
 * Places values so that those that are in memory at the same time do not overlap; first fit, in the
 * order of their first steps.
 */
export function layOutArena(lifetimes: readonly Lifetime[], maxWords: number): ArenaLayout {
  const slabs: Slab[] = [];
  const places: ArenaPlace[] = [];
  const order = lifetimes.map((_, i) => i).sort((a, b) => lifetimes[a].first - lifetimes[b].first || a - b);
  const byEnd = [...order].sort((a, b) => lifetimes[a].last - lifetimes[b].last);
  let ended = 0;
  for (const index of order) {
    const { words, first } = lifetimes[index];
    for (; ended < byEnd.length && lifetimes[byEnd[ended]].last < first; ended++) {
      const other = byEnd[ended];
      release(slabs[places[other].slab], places[other].start, align(lifetimes[other].words));
    }
    places[index] = place(slabs, align(words), maxWords);
  }
  return { places, slabs: slabs.map(({ end }) => end) };
}

function align(words: number): number {
  return Math.max(1, Math.ceil(words / ALIGNMENT)) * ALIGNMENT;
}

function place(slabs: Slab[], words: number, maxWords: number): ArenaPlace {
  if (words > maxWords) throw new Error(`a value of ${words * 4} bytes exceeds the GPU's largest buffer`);
  for (const [slab, { free }] of slabs.entries()) {
    let best = -1;
    free.forEach((range, i) => {
      if (range.words >= words && (best < 0 || range.words < free[best].words)) best = i;
    });
    if (best < 0) continue;
    const range = free[best];
    const { start } = range;
    if (range.words === words) free.splice(best, 1);
    else free[best] = { start: start + words, words: range.words - words };
    return { slab, start };
  }
  const fitting = slabs.findIndex(({ end }) => end + words <= maxWords);
  const slab = fitting >= 0 ? fitting : slabs.push({ free: [], end: 0 }) - 1;
  const { free, end } = slabs[slab];
  // The last free range may reach the end.
  const last = free.at(-1);
  const start = last !== undefined && last.start + last.words === end ? last.start : end;
  if (start < end) free.pop();
  slabs[slab].end = start + words;
  return { slab, start };
}

/** Returns a range to the free ones, joined with its neighbors. */
function release(slab: Slab, start: number, words: number): void {
  const next = slab.free.find((range) => range.start === start + words);
  const previous = slab.free.find((range) => range.start + range.words === start);
  const joined = {
    start: previous?.start ?? start,
    words: (previous?.words ?? 0) + words + (next?.words ?? 0),
  };
  slab.free = [...slab.free.filter((range) => range !== next && range !== previous), joined].sort(
    (a, b) => a.start - b.start,
  );
}

/** Memory for temporary values, shared by all programs of a device, of which one runs at a time. */
export class Arena {
  private slabs: DeviceBuffer[] = [];
  /** Changes when a slab is replaced. */
  generation = 0;

  constructor(private readonly executor: GpuExecutor) {}

  /** Grows slabs to sizes in words. */
  reserve(sizes: readonly number[]): void {
    sizes.forEach((words, i) => {
      const slab = this.slabs[i];
      if (slab !== undefined && slab.words >= words) return;
      if (slab !== undefined) this.executor.destroyBuffer(slab);
      const grown = Math.min(this.executor.maxBufferWords, Math.ceil(words * 1.1));
      this.slabs[i] = this.executor.createBuffer(grown);
      this.generation++;
    });
  }

  slab(index: number): DeviceBuffer {
    return this.slabs[index];
  }
}
