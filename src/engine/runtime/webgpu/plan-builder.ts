import { ELEMENTS_PER_WORD, type GpuProgram, type GpuStep, type KernelCall } from "../../gpu/program.js";
import type { DType } from "../../tensor/dtype.js";
import type { Tensor } from "../../tensor/tensor.js";
import type { BufferView } from "../buffer-view.js";
import { layOutArena, type Arena, type ArenaPlace, type Lifetime } from "./arena.js";
import { listParameters } from "./assemble-shader.js";
import { DimValues } from "./dim-values.js";
import type { GpuExecutor, Location } from "./gpu-executor.js";
import { listBuffers, type DeviceBuffer, type PreparedDispatch } from "./gpu-pipelines.js";
import { BUFFER_USAGE } from "./gpu-device.js";

/** What a session needs of its device. */
export interface GpuContext {
  readonly executor: GpuExecutor;
  readonly arena: Arena;
  /** Returns the place of a worker-owned buffer's view. */
  locate(view: BufferView): Location;
}

/** Inputs and outputs of a run. */
export interface GpuRun {
  readonly feeds: ReadonlyMap<string, Tensor | BufferView>;
  /** Outputs to compute, and the views that receive them. */
  readonly fetches: ReadonlyMap<string, BufferView | undefined>;
}

const PARAMETER_WORDS = 64;
/** Storage buffers that every WebGPU device lets a kernel bind. */
const MAX_BINDINGS = 8;

/** A place of a value: fixed, or in the arena. */
export type Place = Location | ArenaPlace;

/** A kernel of a dispatch with its operands. */
interface PlannedPart {
  readonly kernel: number;
  readonly places: readonly Place[];
  readonly starts: readonly number[];
  readonly groups: number;
  readonly parameters: readonly number[];
}

/** A dispatch with evaluated parameters. */
interface PlannedDispatch {
  readonly parts: readonly PlannedPart[];
  readonly parameterOffset: number;
}

/** Everything about a run that follows from its sizes and views. */
export interface Plan {
  readonly dispatches: readonly PlannedDispatch[];
  readonly slabs: readonly number[];
  readonly uniform: DeviceBuffer;
  /** Words of fed tensors, in one buffer. */
  readonly feedBuffer: DeviceBuffer | undefined;
  readonly feedStarts: ReadonlyMap<string, number>;
  readonly outputs: readonly PlannedOutput[];
  prepared: readonly PreparedDispatch[] | undefined;
  generation: number;
}

export interface PlannedOutput {
  readonly name: string;
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly place: Place;
  /** View that receives a copy; undefined if the output is computed in place or returned. */
  readonly copyTo: Location | undefined;
  readonly isReturned: boolean;
}

/** Builds the plan of a run: places of all values, and parameters of all dispatches. */
export class PlanBuilder {
  private readonly dims: DimValues;

  constructor(
    private readonly context: GpuContext,
    private readonly program: GpuProgram,
    private readonly weights: ReadonlyMap<string, DeviceBuffer>,
    private readonly constants: ReadonlyMap<number, Location>,
    private readonly run: GpuRun,
    sizes: Map<string, number>,
  ) {
    this.dims = new DimValues(program.dims, sizes);
  }

  build(freeUniforms: DeviceBuffer[]): Plan {
    const { executor } = this.context;
    const { feedStarts, feedBuffer } = this.placeFeeds();
    const { places, slabs, outputs } = this.placeValues(feedStarts, feedBuffer);
    const parameters: number[] = [];
    const dispatches = this.expandSteps().flatMap(([step, chunk]) => {
      if (chunk !== undefined) this.dims.setChunk(chunk.rows, chunk.start);
      return this.planStep(step, places, parameters);
    });
    const index = freeUniforms.findIndex(({ words }) => words >= parameters.length);
    const uniform =
      index >= 0
        ? freeUniforms.splice(index, 1)[0]
        : executor.createBuffer(Math.ceil(parameters.length / 16_384) * 16_384, BUFFER_USAGE.uniform);
    executor.upload(uniform.buffer, 0, Uint32Array.from(parameters));
    return {
      dispatches,
      slabs,
      uniform,
      feedBuffer,
      feedStarts,
      outputs,
      prepared: undefined,
      generation: -1,
    };
  }

  private placeFeeds() {
    const feedStarts = new Map<string, number>();
    let end = 0;
    for (const { source, format, elements } of this.program.values) {
      if (source.kind !== "input") continue;
      if ("buffer" in this.run.feeds.get(source.name)! || feedStarts.has(source.name)) continue;
      feedStarts.set(source.name, end);
      end += Math.ceil(this.dims.get(elements) / ELEMENTS_PER_WORD[format] / 4) * 4;
    }
    return { feedStarts, feedBuffer: feedStarts.size === 0 ? undefined : this.context.executor.createBuffer(end) };
  }

  /** Returns the steps in order, those of repeated blocks once per chunk. */
  private expandSteps(): [GpuStep, { rows: number; start: number } | undefined][] {
    const { steps, blocks } = this.program;
    const expanded: [GpuStep, { rows: number; start: number } | undefined][] = [];
    for (let i = 0; i < steps.length;) {
      const { block } = steps[i];
      if (block === undefined) {
        expanded.push([steps[i++], undefined]);
        continue;
      }
      let end = i;
      while (end < steps.length && steps[end].block === block) end++;
      const rows = this.dims.get(blocks[block].rows);
      for (let start = 0; start < rows; start += blocks[block].chunkRows) {
        const chunk = { rows: Math.min(blocks[block].chunkRows, rows - start), start };
        for (let k = i; k < end; k++) expanded.push([steps[k], chunk]);
      }
      i = end;
    }
    return expanded;
  }

  /** Plans a step as one dispatch, or as several where one would bind too many buffers. */
  private planStep({ parts }: GpuStep, places: readonly Place[], parameters: number[]): PlannedDispatch[] {
    const dispatches: PlannedPart[][] = [];
    let bound = new Set<string>();
    for (const part of parts.flatMap(({ calls }) => this.planCall(calls, places) ?? [])) {
      const buffers = part.places.flatMap((place) =>
        "slab" in place ? [`slab ${place.slab}`] : listBuffers(place.buffer).map(({ id }) => `${id}`),
      );
      const joined = new Set([...bound, ...buffers]);
      const fits = dispatches.length > 0 && joined.size <= MAX_BINDINGS;
      if (fits) dispatches.at(-1)!.push(part);
      else dispatches.push([part]);
      bound = fits ? joined : new Set(buffers);
    }
    return dispatches.map((each) => {
      const parameterOffset = parameters.length * 4;
      parameters.push(...listParameters(each));
      while (parameters.length % PARAMETER_WORDS !== 0) parameters.push(0);
      return { parts: each, parameterOffset };
    });
  }

  /** Evaluates the call that applies; undefined if it has no workgroups. */
  private planCall(calls: readonly KernelCall[], places: readonly Place[]): PlannedPart | undefined {
    const call = calls.find(({ rows, upTo }) => rows === undefined || this.dims.get(rows) <= upTo!)!;
    const groups = call.groups.reduce<number>((product, factor) => product * this.dims.get(factor), 1);
    if (groups === 0) return undefined;
    const kernel = this.program.kernels[call.kernel];
    const starts = call.values.map((value, i) => {
      const elements = this.dims.get(call.offsets[i]);
      return places[value].start + elements / ELEMENTS_PER_WORD[kernel.operands[i].format];
    });
    return {
      kernel: call.kernel,
      places: call.values.map((value) => places[value]),
      starts,
      groups,
      parameters: call.parameters.map((parameter) => this.dims.get(parameter)),
    };
  }

  private placeValues(feedStarts: ReadonlyMap<string, number>, feedBuffer: DeviceBuffer | undefined) {
    const { values, outputs } = this.program;
    const places: Place[] = [];
    const inPlace = this.findOutputsInPlace();
    const lifetimes = findLifetimes(this.program, this.dims, (name) => this.run.fetches.has(name));
    const temporary: number[] = [];
    values.forEach(({ source }, index) => {
      switch (source.kind) {
        case "input": {
          const feed = this.run.feeds.get(source.name)!;
          places[index] =
            "buffer" in feed ? this.context.locate(feed) : { buffer: feedBuffer!, start: feedStarts.get(source.name)! };
          break;
        }
        case "weight":
          places[index] = { buffer: this.weights.get(source.name)!, start: 0 };
          break;
        case "constant":
          places[index] = this.constants.get(index)!;
          break;
        case "temporary":
          if (inPlace.has(index)) places[index] = inPlace.get(index)!;
          else if (lifetimes[index] !== undefined) temporary.push(index);
      }
    });
    const layout = layOutArena(
      temporary.map((index) => lifetimes[index]!),
      this.context.executor.maxBufferWords,
    );
    temporary.forEach((index, i) => (places[index] = layout.places[i]));
    const planned = outputs.flatMap(({ name, dtype, value, shape }): PlannedOutput[] => {
      if (!this.run.fetches.has(name)) return [];
      const view = this.run.fetches.get(name);
      const copyTo = view === undefined || inPlace.has(value) ? undefined : this.context.locate(view);
      const sizes = shape.map((size) => this.dims.get(size));
      return [{ name, dtype, shape: sizes, place: places[value], copyTo, isReturned: view === undefined }];
    });
    return { places, slabs: layout.slabs, outputs: planned };
  }

  /**
   * Returns the places of outputs that are computed where they are fetched: in buffers that the run
   * does not read.
   */
  private findOutputsInPlace(): Map<number, Location> {
    const read = new Set([...this.run.feeds.values()].flatMap((feed) => ("buffer" in feed ? [feed.buffer] : [])));
    const places = new Map<number, Location>();
    for (const { name, value } of this.program.outputs) {
      const view = this.run.fetches.get(name);
      if (view !== undefined && !read.has(view.buffer)) places.set(value, this.context.locate(view));
    }
    return places;
  }
}

/**
 * Returns when each temporary value of a run is in memory; undefined for values that no step uses.
 */
export function findLifetimes(
  { steps, values, outputs }: Pick<GpuProgram, "steps" | "values" | "outputs">,
  dims: DimValues,
  isFetched: (output: string) => boolean,
): (Lifetime | undefined)[] {
  const blockEnds = new Map<number, [first: number, last: number]>();
  steps.forEach(({ block }, i) => {
    if (block !== undefined) blockEnds.set(block, [blockEnds.get(block)?.[0] ?? i, i]);
  });
  const lifetimes: (Lifetime | undefined)[] = values.map(() => undefined);
  steps.forEach(({ parts, block }, i) => {
    const [first, last] = block === undefined ? [i, i] : blockEnds.get(block)!;
    for (const value of parts.flatMap(({ calls }) => calls.flatMap((call) => call.values))) {
      const known = lifetimes[value];
      if (known !== undefined) known.last = Math.max(known.last, last);
      else lifetimes[value] = { words: dims.get(values[value].elements), first, last };
    }
  });
  for (const { name, value } of outputs) {
    const known = lifetimes[value];
    if (isFetched(name) && known !== undefined) known.last = steps.length;
  }
  return lifetimes;
}
