import { countElements } from "../../../core/numbers.js";
import type { GpuProgram } from "../../gpu/program.js";
import { fromWords } from "../../gpu/words.js";
import type { Tensor } from "../../tensor/tensor.js";
import type { GpuExecutor, Location } from "./gpu-executor.js";
import type { DeviceBuffer } from "./gpu-pipelines.js";
import { packWords, SEGMENT_WORDS, toWordRange, UNPACK, unpackGroups } from "./pack-words.js";
import {
  PlanBuilder,
  type GpuContext,
  type GpuRun,
  type Place,
  type Plan,
  type PlannedOutput,
} from "./plan-builder.js";

/** Plans that a session keeps for further runs of the same sizes. */
const MAX_PLANS = 12;

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
    if (plan.prepared === undefined || plan.generation !== arena.generation) await this.prepare(plan);
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

  private async prepare(plan: Plan): Promise<void> {
    const { executor, arena } = this.context;
    const bound = plan.dispatches.map(({ parts }) =>
      parts.map(({ kernel, places, groups }) => ({
        kernel: this.program.kernels[kernel],
        buffers: places.map((place) => this.resolve(place).buffer),
        groups,
      })),
    );
    await executor.compile(bound);
    plan.prepared = plan.dispatches.map(({ parameterOffset }, i) =>
      executor.prepare(bound[i], plan.uniform, parameterOffset),
    );
    plan.generation = arena.generation;
  }

  /** Sends fed tensors, packed, and unpacks them on the device. */
  private writeFeeds({ feedBuffer, feedStarts }: Plan, feeds: GpuRun["feeds"]): void {
    if (feedBuffer === undefined) return;
    const { executor } = this.context;
    const ranges = [...feedStarts].map(([name, start]) => toWordRange(feeds.get(name) as Tensor, start));
    const { words, segments } = packWords(ranges);
    const end = Math.max(0, ...ranges.map((range) => range.start + range.words.length));
    const packed = executor.uploadTransient(words);
    const target = { buffer: feedBuffer, start: 0 };
    executor.run(UNPACK, [packed, target], [end, segments, SEGMENT_WORDS * segments], unpackGroups(end));
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
