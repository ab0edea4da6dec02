import { sleep } from "../../../core/sleep.js";
import type { KernelSource } from "../../gpu/program.js";
import { assembleShader, countParameterWords, listParameters, type BindingPattern } from "./assemble-shader.js";
import type { GpuCounters } from "./gpu-counters.js";
import type {
  GPUBindGroup,
  GPUBindGroupLayout,
  GPUBuffer,
  GPUCommandEncoder,
  GPUComputePassEncoder,
  GPUComputePipeline,
  GPUDevice,
} from "./webgpu-api.js";
import { BUFFER_USAGE, mapWords, openGpu, type OpenedGpu } from "./gpu-device.js";

/** A buffer on the device with an identity by which bind groups are found. */
export interface DeviceBuffer {
  readonly id: number;
  readonly buffer: GPUBuffer;
  /** Size in words. */
  readonly words: number;
  /** Further buffers of a weight that is larger than one; all but the last have `pieceWords`. */
  readonly rest?: readonly DeviceBuffer[];
}

/** The place of an operand. */
export interface Location {
  readonly buffer: DeviceBuffer;
  /** First word. */
  readonly start: number;
}

/** A kernel of a dispatch with the buffers of its operands and the number of its workgroups. */
interface BoundPart {
  readonly kernel: KernelSource;
  readonly buffers: readonly DeviceBuffer[];
  readonly groups: number;
}

interface Pipeline {
  readonly id: number;
  readonly pipeline: GPUComputePipeline;
  readonly layout: GPUBindGroupLayout;
}

/** One dispatch, ready to be encoded. */
export interface PreparedDispatch {
  readonly pipeline: GPUComputePipeline;
  readonly group: GPUBindGroup;
  readonly parameterOffset: number;
  readonly groups: readonly [number, number];
}

const MAX_GROUPS = 65_535;
/**
 * Dispatches in one submission, so that each is short and the device computes while further ones
 * are encoded.
 */
const MAX_PENDING_DISPATCHES = 128;
const PARAMETER_ALIGNMENT = 256;
/** Time in which a device reports its loss. */
const LOSS_TIMEOUT_MS = 1000;
/** Bytes of parameters and data of kernels outside of programs, between two submissions. */
const TRANSIENT_BYTES = 2 ** 20;

/** Encodes dispatches and copies on a GPU, and reads results back. */
export class GpuExecutor {
  readonly counters: GpuCounters = {
    bytesUp: 0,
    bytesDown: 0,
    dispatches: 0,
    submissions: 0,
    pipelines: 0,
    bufferBytes: 0,
    peakBufferBytes: 0,
  };
  private readonly device: GPUDevice;
  private encoder: GPUCommandEncoder | undefined;
  private pass: GPUComputePassEncoder | undefined;
  private pendingDispatches = 0;
  private nextBufferId = 0;
  private readonly pipelines = new Map<string, Pipeline>();
  private readonly kernelKeys = new Map<string, number>();
  private readonly groups = new Map<string, GPUBindGroup>();
  private readonly layouts = new Map<string, GPUBindGroupLayout>();
  private readonly retired: DeviceBuffer[] = [];
  private readonly staging: { buffer: GPUBuffer; bytes: number }[] = [];
  private transient: { uniform: DeviceBuffer; storage: DeviceBuffer; uniformUsed: number; storageUsed: number };
  private deviceError: string | undefined;
  private loss: string | undefined;
  private isClosed = false;

  private constructor(
    private readonly opened: OpenedGpu,
    /** Words of a buffer of a weight that is larger than one. */
    private readonly pieceWords = largestBufferWords(opened),
  ) {
    this.device = opened.device;
    this.device.addEventListener("uncapturederror", (event) => {
      event.preventDefault();
      this.deviceError ??= event.error.message;
    });
    void this.device.lost.then(({ message }) => {
      if (!this.isClosed) this.loss = message;
    });
    this.transient = {
      uniform: this.createBuffer(TRANSIENT_BYTES / 4, BUFFER_USAGE.uniform),
      storage: this.createBuffer(TRANSIENT_BYTES / 4),
      uniformUsed: 0,
      storageUsed: 0,
    };
  }

  /** @param pieceWords Words from which on a weight is split; default those of the largest buffer. */
  static async open(pieceWords?: number): Promise<GpuExecutor> {
    return new GpuExecutor(await openGpu(), pieceWords);
  }

  get name(): string {
    return this.opened.name;
  }

  /** Optional features that the adapter has. */
  get features(): readonly string[] {
    return this.opened.features;
  }

  /** Words of the largest buffer that a kernel can read. */
  get maxBufferWords(): number {
    return largestBufferWords(this.opened);
  }

  /** Creates the buffer of a weight, or several, as `rest`, where it is larger than one. */
  createWeight(words: number): DeviceBuffer {
    const { pieceWords } = this;
    const count = Math.max(1, Math.ceil(words / pieceWords));
    const [first, ...rest] = Array.from({ length: count }, (_, i) =>
      this.createBuffer(Math.min(pieceWords, words - i * pieceWords)),
    );
    return count === 1 ? first : { ...first, rest };
  }

  /** Writes words of a weight that no encoded work reads. */
  uploadWeight(weight: DeviceBuffer, start: number, words: Uint32Array<ArrayBuffer>): void {
    const { pieceWords } = this;
    listBuffers(weight).forEach(({ buffer }, i) => {
      const from = Math.max(start, i * pieceWords);
      const to = Math.min(start + words.length, (i + 1) * pieceWords);
      if (from < to) this.upload(buffer, from - i * pieceWords, words.subarray(from - start, to - start));
    });
  }

  createBuffer(words: number, usage: number = BUFFER_USAGE.storage): DeviceBuffer {
    const size = Math.max(4, words) * 4;
    if (words > this.maxBufferWords) throw new Error(`a value of ${size} bytes exceeds the GPU's largest buffer`);
    const buffer = this.device.createBuffer({
      size,
      usage: usage | BUFFER_USAGE.copySource | BUFFER_USAGE.copyTarget,
    });
    this.counters.bufferBytes += size;
    this.counters.peakBufferBytes = Math.max(this.counters.peakBufferBytes, this.counters.bufferBytes);
    return { id: this.nextBufferId++, buffer, words: size / 4 };
  }

  /** Frees a buffer once the work that uses it has been submitted. */
  destroyBuffer(buffer: DeviceBuffer): void {
    this.retired.push(...listBuffers(buffer));
    if (this.encoder === undefined) this.destroyRetired();
  }

  private destroyRetired(): void {
    if (this.retired.length === 0) return;
    const ids = new Set(this.retired.map(({ id }) => id));
    for (const key of this.groups.keys())
      if (
        key
          .slice(key.indexOf(":") + 1)
          .split(",")
          .some((id) => ids.has(Number(id)))
      )
        this.groups.delete(key);
    for (const { buffer, words } of this.retired.splice(0)) {
      buffer.destroy();
      this.counters.bufferBytes -= words * 4;
    }
  }

  /** Writes words, after all work that was encoded before. */
  write({ buffer: { buffer }, start }: Location, words: Uint32Array<ArrayBuffer>): void {
    this.submit();
    this.upload(buffer, start, words);
  }

  /** Writes words that no encoded work reads. */
  upload(buffer: GPUBuffer, start: number, words: Uint32Array<ArrayBuffer>): void {
    if (words.length === 0) return;
    this.device.queue.writeBuffer(buffer, start * 4, words);
    this.counters.bytesUp += words.byteLength;
  }

  /** Prepares a dispatch of one or several parts. */
  prepare(parts: readonly BoundPart[], uniform: DeviceBuffer, parameterOffset: number): PreparedDispatch {
    const kernels = parts.map(({ kernel }) => kernel);
    const { pattern, buffers } = bindOperands(parts);
    const { id, pipeline, layout } = this.getPipeline(kernels, pattern);
    const key = `${id}:${uniform.id},${buffers.map((buffer) => buffer.id).join()}`;
    const group =
      this.groups.get(key) ??
      this.device.createBindGroup({
        layout,
        entries: [
          { binding: 0, resource: { buffer: uniform.buffer, size: Math.ceil(countParameterWords(kernels) / 4) * 16 } },
          ...buffers.map(({ buffer }, slot) => ({ binding: slot + 1, resource: { buffer } })),
        ],
      });
    this.groups.set(key, group);
    const count = parts.reduce((sum, { groups }) => sum + groups, 0);
    const x = Math.min(count, MAX_GROUPS);
    return { pipeline, group, parameterOffset, groups: [x, Math.ceil(count / x)] };
  }

  encode({ pipeline, group, parameterOffset, groups: [x, y] }: PreparedDispatch): void {
    const pass = this.currentPass();
    pass.setPipeline(pipeline);
    pass.setBindGroup(0, group, [parameterOffset]);
    pass.dispatchWorkgroups(x, y);
    this.counters.dispatches++;
    if (++this.pendingDispatches >= MAX_PENDING_DISPATCHES) this.submit();
  }

  /** Runs a kernel outside of programs. */
  run(kernel: KernelSource, locations: readonly Location[], parameters: readonly number[], groupCount: number): void {
    if (groupCount === 0) return;
    const starts = locations.map(({ start }) => start);
    const words = Uint32Array.from(listParameters([{ groups: groupCount, starts, parameters }]));
    const size = Math.ceil((words.length * 4) / PARAMETER_ALIGNMENT) * PARAMETER_ALIGNMENT;
    if (this.transient.uniformUsed + size > TRANSIENT_BYTES) this.submit();
    const offset = this.transient.uniformUsed;
    this.transient.uniformUsed += size;
    this.upload(this.transient.uniform.buffer, offset / 4, words);
    const part = { kernel, buffers: locations.map(({ buffer }) => buffer), groups: groupCount };
    this.encode(this.prepare([part], this.transient.uniform, offset));
  }

  /** Uploads data that one dispatch reads. */
  uploadTransient(words: Uint32Array<ArrayBuffer>): Location {
    const bytes = Math.max(4, words.byteLength);
    if (bytes > TRANSIENT_BYTES) {
      this.submit();
      const buffer = this.createBuffer(words.length);
      this.upload(buffer.buffer, 0, words);
      this.currentEncoder();
      this.destroyBuffer(buffer);
      return { buffer, start: 0 };
    }
    const isFull = this.transient.storageUsed + bytes > TRANSIENT_BYTES;
    if (isFull || this.transient.uniformUsed + 4096 > TRANSIENT_BYTES) this.submit();
    const start = this.transient.storageUsed / 4;
    this.transient.storageUsed += bytes;
    this.upload(this.transient.storage.buffer, start, words);
    return { buffer: this.transient.storage, start };
  }

  copy(source: Location, target: Location, words: number): void {
    if (words === 0) return;
    const encoder = this.currentEncoder();
    this.endPass();
    encoder.copyBufferToBuffer(
      source.buffer.buffer,
      source.start * 4,
      target.buffer.buffer,
      target.start * 4,
      words * 4,
    );
  }

  /** Reads several ranges of words at once. */
  async read(ranges: readonly (Location & { readonly words: number })[]): Promise<Uint32Array[]> {
    const total = ranges.reduce((sum, { words }) => sum + words, 0);
    if (total === 0) {
      this.submit();
      return ranges.map(() => new Uint32Array(0));
    }
    const bytes = total * 4;
    const staged = this.takeStaging(bytes);
    const encoder = this.currentEncoder();
    this.endPass();
    let offset = 0;
    for (const { buffer, start, words } of ranges) {
      if (words > 0) encoder.copyBufferToBuffer(buffer.buffer, start * 4, staged.buffer, offset, words * 4);
      offset += words * 4;
    }
    this.submit();
    const all = await mapWords(staged.buffer, bytes).catch(async (error: unknown) => {
      // The loss of a device is reported after the reads that it ends.
      await Promise.race([this.device.lost, sleep(LOSS_TIMEOUT_MS)]);
      this.checkErrors();
      throw error;
    });
    this.staging.push(staged);
    this.counters.bytesDown += bytes;
    this.checkErrors();
    let at = 0;
    return ranges.map(({ words }) => all.subarray(at, (at += words)));
  }

  /** Throws the first error that the device reported, and at every call that it was lost. */
  checkErrors(): void {
    if (this.loss !== undefined)
      throw new Error(
        `the GPU was lost (${this.loss}), and all values on it. Its driver was reset or updated, or its memory was ` +
          "exhausted. Start the program again and resume from the last checkpoint",
      );
    if (this.deviceError === undefined) return;
    const message = this.deviceError;
    this.deviceError = undefined;
    throw new Error(message);
  }

  submit(): void {
    if (this.encoder === undefined) return;
    this.endPass();
    this.device.queue.submit([this.encoder.finish()]);
    this.encoder = undefined;
    this.pendingDispatches = 0;
    this.counters.submissions++;
    this.transient.uniformUsed = this.transient.storageUsed = 0;
    this.destroyRetired();
  }

  private takeStaging(bytes: number): { buffer: GPUBuffer; bytes: number } {
    const index = this.staging.findIndex((staged) => staged.bytes >= bytes && staged.bytes <= 4 * bytes + 65_536);
    if (index >= 0) return this.staging.splice(index, 1)[0];
    for (const { buffer } of this.staging.splice(0, Math.max(0, this.staging.length - 4))) buffer.destroy();
    const size = 2 ** Math.ceil(Math.log2(Math.max(1024, bytes)));
    const buffer = this.device.createBuffer({ size, usage: BUFFER_USAGE.mapRead | BUFFER_USAGE.copyTarget });
    return { buffer, bytes: size };
  }

  private currentEncoder(): GPUCommandEncoder {
    return (this.encoder ??= this.device.createCommandEncoder());
  }

  private currentPass(): GPUComputePassEncoder {
    return (this.pass ??= this.currentEncoder().beginComputePass());
  }

  private endPass(): void {
    this.pass?.end();
    this.pass = undefined;
  }

  private getPipeline(kernels: readonly KernelSource[], pattern: BindingPattern): Pipeline {
    const kernelKey = kernels.map((kernel) => kernelIdentity(kernel, this.kernelKeys)).join();
    const key = `${kernelKey}|${pattern.slots.join("; ")}|${pattern.written.map(Number).join()}`;
    const known = this.pipelines.get(key);
    if (known !== undefined) return known;
    const layout = this.getLayout(pattern.written);
    const module = this.device.createShaderModule({ code: assembleShader(kernels, pattern, this.pieceWords) });
    const pipeline = this.device.createComputePipeline({
      layout: this.device.createPipelineLayout({ bindGroupLayouts: [layout] }),
      compute: { module, entryPoint: "main" },
    });
    const created = { id: this.pipelines.size, pipeline, layout };
    this.pipelines.set(key, created);
    this.counters.pipelines++;
    return created;
  }

  private getLayout(written: readonly boolean[]): GPUBindGroupLayout {
    const key = written.map(Number).join();
    const known = this.layouts.get(key);
    if (known !== undefined) return known;
    const COMPUTE = 4;
    const layout = this.device.createBindGroupLayout({
      entries: [
        { binding: 0, visibility: COMPUTE, buffer: { type: "uniform", hasDynamicOffset: true } },
        ...written.map((isWritten, slot) => ({
          binding: slot + 1,
          visibility: COMPUTE,
          buffer: { type: isWritten ? ("storage" as const) : ("read-only-storage" as const) },
        })),
      ],
    });
    this.layouts.set(key, layout);
    return layout;
  }

  close(): void {
    this.isClosed = true;
    this.device.destroy();
  }
}

/** Returns the buffers of an operand: several for a weight that is larger than one. */
export function listBuffers(operand: DeviceBuffer): readonly DeviceBuffer[] {
  return operand.rest === undefined ? [operand] : [operand, ...operand.rest];
}

/** Words of the largest buffer that a kernel can read. */
function largestBufferWords({ device: { limits } }: OpenedGpu): number {
  return Math.floor(Math.min(limits.maxStorageBufferBindingSize, limits.maxBufferSize) / 4);
}

const identities = new WeakMap<KernelSource, number>();

/** Returns a number that is equal for equal kernels. */
function kernelIdentity(kernel: KernelSource, keys: Map<string, number>): number {
  const known = identities.get(kernel);
  if (known !== undefined) return known;
  const key = JSON.stringify(kernel);
  const identity = keys.get(key) ?? keys.size;
  keys.set(key, identity);
  identities.set(kernel, identity);
  return identity;
}

/**
 * Binds each buffer once: WebGPU allows no buffer to be both read and written through two bindings.
 */
function bindOperands(parts: readonly BoundPart[]): { pattern: BindingPattern; buffers: DeviceBuffer[] } {
  const slotOf = new Map<number, number>();
  const written: boolean[] = [];
  const bound: DeviceBuffer[] = [];
  const slots = parts.map(({ kernel, buffers }) =>
    buffers.map((operand, i) =>
      listBuffers(operand).map((buffer) => {
        const slot = slotOf.get(buffer.id) ?? bound.push(buffer) - 1;
        slotOf.set(buffer.id, slot);
        written[slot] = (written[slot] ?? false) || kernel.operands[i].isWritten;
        return slot;
      }),
    ),
  );
  return { pattern: { slots, written }, buffers: bound };
}
