import { countElements } from "../../../core/count-elements.js";
import {
  CHUNK_ROWS,
  CHUNK_START,
  ELEMENTS_PER_WORD,
  type DimTerms,
  type GpuNumber,
  type GpuProgram,
  type GpuStep,
} from "../../gpu/program.js";
import { fromWords, toWords } from "../../gpu/words.js";
import type { DType } from "../../tensor/dtype.js";
import type { Tensor } from "../../tensor/tensor.js";
import type { BufferView } from "../buffer-view.js";
import { layOutArena, type Arena, type ArenaPlace, type Lifetime } from "./arena.js";
import { countParameterWords } from "./assemble-shader.js";
import type { DeviceBuffer, GpuExecutor, Location, PreparedDispatch } from "./gpu-executor.js";
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

/** Plans that a session keeps for further runs of the same sizes. */
const MAX_PLANS = 12;
const PARAMETER_WORDS = 64;

/** A place of a value: fixed, or in the arena. */
type Place = Location | ArenaPlace;

/** A dispatch with evaluated parameters. */
interface PlannedDispatch {
  readonly kernel: number;
  readonly places: readonly Place[];
  readonly starts: readonly number[];
  readonly groups: number;
  readonly parameterOffset: number;
}

/** Everything about a run that follows from its sizes and views. */
interface Plan {
  readonly dispatches: readonly PlannedDispatch[];
  readonly slabs: readonly number[];
  readonly uniform: DeviceBuffer;
  /** Words of fed tensors, in one buffer. */
  readonly feedBuffer: DeviceBuffer | undefined;
  readonly feedStarts: ReadonlyMap<string, number>;
  readonly outputs: readonly PlannedOutput[];
  prepared: readonly PreparedDispatch[] | undefined;
  generation: number;
  /** Submissions before the last run, whose feeds may not be overwritten before it is submitted. */
  submissions: number;
}

interface PlannedOutput {
  readonly name: string;
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly place: Place;
  /** View that receives a copy; undefined if the output is computed in place or returned. */
  readonly copyTo: Location | undefined;
  readonly isReturned: boolean;
}

/** A program on the device, with its weights. */
export class GpuSession {
  private readonly plans = new Map<string, Plan>();
  private readonly constants: ReadonlyMap<number, Location>;
  private readonly constantBuffer: DeviceBuffer | undefined;
  private readonly freeUniforms: DeviceBuffer[] = [];

  constructor(
    private readonly context: GpuContext,
    private readonly program: GpuProgram,
    private readonly weights: ReadonlyMap<string, DeviceBuffer>,
  ) {
    const { buffer, locations } = uploadConstants(context.executor, program);
    this.constantBuffer = buffer;
    this.constants = locations;
  }

  async run({ feeds, fetches }: GpuRun): Promise<Record<string, Tensor>> {
    const { executor, arena } = this.context;
    const plan = this.findPlan({ feeds, fetches });
    this.writeFeeds(plan, feeds);
    arena.reserve(plan.slabs);
    if (plan.prepared === undefined || plan.generation !== arena.generation) this.prepare(plan);
    plan.submissions = executor.submissions;
    for (const dispatch of plan.prepared!) executor.encode(dispatch);
    for (const output of plan.outputs) if (output.copyTo !== undefined) this.copyOutput(output);
    return this.returnOutputs(plan.outputs.filter(({ isReturned }) => isReturned));
  }

  release(): void {
    const { executor } = this.context;
    for (const plan of this.plans.values()) this.dropPlan(plan);
    this.plans.clear();
    for (const buffer of this.freeUniforms) executor.destroyBuffer(buffer);
    if (this.constantBuffer !== undefined) executor.destroyBuffer(this.constantBuffer);
  }

  private copyOutput({ place, copyTo, shape }: PlannedOutput): void {
    const source = this.resolve(place);
    this.context.executor.copy(source, copyTo!, countElements(shape));
  }

  private async returnOutputs(outputs: readonly PlannedOutput[]): Promise<Record<string, Tensor>> {
    if (outputs.length === 0) return {};
    const ranges = outputs.map(({ place, shape }) => ({ ...this.resolve(place), words: countElements(shape) }));
    const words = await this.context.executor.read(ranges);
    return Object.fromEntries(
      outputs.map(({ name, dtype, shape }, i) => [name, { dtype, shape, data: fromWords(dtype, words[i].slice()) }]),
    );
  }

  private resolve(place: Place): Location {
    return "slab" in place ? { buffer: this.context.arena.slab(place.slab), start: place.start } : place;
  }

  private prepare(plan: Plan): void {
    const { executor, arena } = this.context;
    plan.prepared = plan.dispatches.map(({ kernel, places, starts, groups, parameterOffset }) => {
      const locations = places.map((place, i) => ({ buffer: this.resolve(place).buffer, start: starts[i] }));
      return executor.prepare(this.program.kernels[kernel], locations, groups, plan.uniform, parameterOffset);
    });
    plan.generation = arena.generation;
  }

  private writeFeeds(plan: Plan, feeds: GpuRun["feeds"]): void {
    const { executor } = this.context;
    if (plan.feedBuffer === undefined) return;
    if (plan.submissions === executor.submissions) executor.submit();
    const all = new Uint32Array(plan.feedBuffer.words);
    let end = 0;
    for (const [name, start] of plan.feedStarts) {
      const { dtype, data } = feeds.get(name) as Tensor;
      const words = toWords(dtype, data);
      all.set(words, start);
      end = Math.max(end, start + words.length);
    }
    executor.upload(plan.feedBuffer.buffer, 0, all.subarray(0, end));
  }

  private findPlan(run: GpuRun): Plan {
    const sizes = this.findSizes(run.feeds);
    const key = planKey(sizes, run);
    const known = this.plans.get(key);
    if (known !== undefined) {
      this.plans.delete(key);
      this.plans.set(key, known);
      return known;
    }
    const plan = new PlanBuilder(this.context, this.program, this.weights, this.constants, run, sizes).build(
      this.freeUniforms,
    );
    this.plans.set(key, plan);
    if (this.plans.size > MAX_PLANS) {
      const [oldest, dropped] = this.plans.entries().next().value!;
      this.plans.delete(oldest);
      this.dropPlan(dropped);
    }
    return plan;
  }

  private dropPlan({ uniform, feedBuffer }: Plan): void {
    const { executor } = this.context;
    // Its parameters are read by work that may not have been submitted.
    executor.submit();
    this.freeUniforms.push(uniform);
    if (feedBuffer !== undefined) executor.destroyBuffer(feedBuffer);
  }

  private findSizes(feeds: GpuRun["feeds"]): Map<string, number> {
    return new Map(this.program.sizes.map(({ name, input, axis }) => [name, feeds.get(input)!.shape[axis]]));
  }
}

function planKey(sizes: ReadonlyMap<string, number>, { feeds, fetches }: GpuRun): string {
  const views: string[] = [];
  for (const [name, value] of feeds) if ("buffer" in value) views.push(`${name}@${value.buffer}:${value.offset}`);
  for (const [name, view] of fetches)
    views.push(`${name}>${view === undefined ? "" : `${view.buffer}:${view.offset}`}`);
  return `${[...sizes.values()].join()}|${views.join()}`;
}

function uploadConstants(
  executor: GpuExecutor,
  { values }: GpuProgram,
): { buffer: DeviceBuffer | undefined; locations: Map<number, Location> } {
  const starts = new Map<number, number>();
  let end = 0;
  values.forEach(({ source }, index) => {
    if (source.kind !== "constant") return;
    starts.set(index, end);
    end += Math.ceil(source.words.length / 4) * 4;
  });
  if (end === 0) return { buffer: undefined, locations: new Map() };
  const all = new Uint32Array(end);
  for (const [index, start] of starts) {
    const { source } = values[index];
    if (source.kind === "constant") all.set(source.words, start);
  }
  const buffer = executor.createBuffer(end);
  executor.upload(buffer.buffer, 0, all);
  return { buffer, locations: new Map([...starts].map(([index, start]) => [index, { buffer, start }])) };
}

/** Evaluates a program's dimensions for the sizes of a run. */
class DimValues {
  private values: (number | undefined)[] = [];

  constructor(
    private readonly dims: readonly DimTerms[],
    private readonly sizes: Map<string, number>,
  ) {}

  setChunk(rows: number, start: number): void {
    this.sizes.set(CHUNK_ROWS, rows).set(CHUNK_START, start);
    this.values = [];
  }

  get(number: GpuNumber): number {
    if (typeof number === "number") return number;
    const value = (this.values[number.dim] ??= this.evaluate(this.dims[number.dim]));
    return "ceilDiv" in number ? Math.ceil(value / number.ceilDiv) : value;
  }

  private evaluate(terms: DimTerms): number {
    let total = 0;
    for (const [coefficient, names] of terms) {
      let product = coefficient;
      for (const name of names) product *= this.sizes.get(name)!;
      total += product;
    }
    return total;
  }
}

/** Builds the plan of a run: places of all values, and parameters of all dispatches. */
class PlanBuilder {
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
      submissions: -1,
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

  private planStep({ calls }: GpuStep, places: readonly Place[], parameters: number[]): PlannedDispatch[] {
    const call = calls.find(({ rows, upTo }) => rows === undefined || this.dims.get(rows) <= upTo!)!;
    const groups = call.groups.reduce<number>((product, factor) => product * this.dims.get(factor), 1);
    if (groups === 0) return [];
    const kernel = this.program.kernels[call.kernel];
    const starts = call.values.map((value, i) => {
      const elements = this.dims.get(call.offsets[i]);
      return places[value].start + elements / ELEMENTS_PER_WORD[kernel.operands[i].format];
    });
    const words = countParameterWords(kernel);
    const parameterOffset = parameters.length * 4;
    parameters.push(groups, ...starts);
    for (const parameter of call.parameters) parameters.push(this.dims.get(parameter));
    const padding = Math.ceil(words / PARAMETER_WORDS) * PARAMETER_WORDS - words;
    for (let i = 0; i < padding; i++) parameters.push(0);
    return [
      { kernel: call.kernel, places: call.values.map((value) => places[value]), starts, groups, parameterOffset },
    ];
  }

  private placeValues(feedStarts: ReadonlyMap<string, number>, feedBuffer: DeviceBuffer | undefined) {
    const { values, outputs } = this.program;
    const places: Place[] = [];
    const inPlace = this.findOutputsInPlace();
    const lifetimes = this.findLifetimes();
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

  /** Returns when each temporary value is in memory; undefined for values that no step uses. */
  private findLifetimes(): (Lifetime | undefined)[] {
    const { steps, values, outputs } = this.program;
    const blockEnds = new Map<number, [first: number, last: number]>();
    steps.forEach(({ block }, i) => {
      if (block !== undefined) blockEnds.set(block, [blockEnds.get(block)?.[0] ?? i, i]);
    });
    const lifetimes: (Lifetime | undefined)[] = values.map(() => undefined);
    steps.forEach(({ calls, block }, i) => {
      const [first, last] = block === undefined ? [i, i] : blockEnds.get(block)!;
      for (const value of calls.flatMap((call) => call.values)) {
        const known = lifetimes[value];
        if (known !== undefined) known.last = Math.max(known.last, last);
        else lifetimes[value] = { words: this.dims.get(values[value].elements), first, last };
      }
    });
    for (const { name, value } of outputs) {
      const known = lifetimes[value];
      if (this.run.fetches.has(name) && known !== undefined) known.last = steps.length;
    }
    return lifetimes;
  }
}
