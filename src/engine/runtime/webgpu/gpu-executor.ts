import { sleep } from "../../../core/sleep.js";
import type { KernelSource } from "../../gpu/program.js";
import { listParameters } from "./assemble-shader.js";
import type { GpuCounters } from "./gpu-counters.js";
import {
  GpuPipelines,
  listBuffers,
  type BoundPart,
  type DeviceBuffer,
  type PreparedDispatch,
} from "./gpu-pipelines.js";
import type { GPUBuffer, GPUCommandEncoder, GPUComputePassEncoder, GPUDevice } from "./webgpu-api.js";
import { BUFFER_USAGE, mapWords, openGpu, type OpenedGpu } from "./gpu-device.js";

/** The place of an operand. */
export interface Location {
  readonly buffer: DeviceBuffer;
  /** First word. */
  readonly start: number;
}

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
  private readonly pipelines: GpuPipelines;
  private encoder: GPUCommandEncoder | undefined;
  private pass: GPUComputePassEncoder | undefined;
  private pendingDispatches = 0;
  private nextBufferId = 0;
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
    this.pipelines = new GpuPipelines(this.device, pieceWords, this.counters);
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
    this.pipelines.forget(ids);
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

  /** Compiles the kernels of dispatches that are prepared next. */
  async compile(dispatches: readonly (readonly BoundPart[])[]): Promise<void> {
    await this.pipelines.compile(dispatches);
  }

  /** Prepares a dispatch of one or several parts. */
  prepare(parts: readonly BoundPart[], uniform: DeviceBuffer, parameterOffset: number): PreparedDispatch {
    return this.pipelines.prepare(parts, uniform, parameterOffset);
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

  close(): void {
    this.isClosed = true;
    this.device.destroy();
  }
}

/** Words of the largest buffer that a kernel can read. */
function largestBufferWords({ device: { limits } }: OpenedGpu): number {
  return Math.floor(Math.min(limits.maxStorageBufferBindingSize, limits.maxBufferSize) / 4);
}
