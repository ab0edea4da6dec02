// oxlint-disable-next-line import/no-unassigned-import -- It must come before a worker is started.
import "./disable-telemetry.js";
import { fs, startWorker, system } from "#platform";
import { GPU_WORKER, RUNTIME_WORKER } from "#compute-workers";
import type { ComputeWorker } from "../../core/platform/ports.js";
import { invalidArgument, LlamaGymError } from "../../core/errors.js";
import type { CompiledGraph, NamedTensorType, WeightLocation } from "../graph/compile.js";
import type { CodeType } from "../graph/emitter.js";
import { byteLength, type DType, type TypedArray } from "../tensor/dtype.js";
import { type Tensor } from "../tensor/tensor.js";
import { countElements } from "../../core/numbers.js";
import type { IoBinding, BufferView } from "./buffer-view.js";
import { type ChosenDevice, type Device, resolveDevice } from "./device.js";
import { createExitGuard, release, waitAtExit } from "./exit-guard.js";
import type { CpuKernelCall, KernelResult } from "./kernels/run-kernel.js";
import type { GpuReport, WorkerRequest, WorkerResponse, WorkerResult } from "./worker-protocol.js";
import { readPackedForms, type PackedForm } from "./packed-forms.js";
import { Session } from "./session.js";

/** Options of a `Runtime`. */
export interface RuntimeOptions {
  /** Device that graphs run on; default "auto", the CPU. */
  readonly device?: Device;
  /** Threads per operation; default `OMP_NUM_THREADS`, or all cores. */
  readonly threads?: number;
}

export interface SessionOptions {
  /** Returns the location of each frozen weight's data. */
  readonly locate?: (weight: NamedTensorType) => WeightLocation;
  /** Folder of the weight files. */
  readonly folder?: string;
  /**
   * In-memory weight files. An ArrayBuffer is transferred and freed; a SharedArrayBuffer remains
   * the caller's.
   */
  readonly buffers?: readonly { readonly name: string; readonly data: Uint8Array }[];
  /**
   * Keeps a packed copy of frozen matrices: twice as fast for few rows, for as much memory again.
   * Otherwise, only forms that are packed in a file are used. Default true.
   */
  readonly packWeights?: boolean;
}

/** Name of the files of packed weights. */
const PACKED_NAME = "packed";

interface PendingRequest {
  readonly resolve: (result: WorkerResult) => void;
  readonly reject: (error: Error) => void;
}

/**
 * Runs compiled graphs in a worker thread, one call after another, without blocking the event loop.
 * `close()` releases its sessions and buffers.
 */
export class Runtime {
  readonly device: ChosenDevice;
  readonly threads: number;
  private readonly worker: ComputeWorker;
  private readonly pending = new Map<number, PendingRequest>();
  /**
   * Requests without a result, which are sent in one message with the next one of the same turn:
   * messages cost more than they do.
   */
  private unsent: WorkerRequest[] = [];
  private nextId = 0;
  private failure: LlamaGymError | undefined;
  private readonly guard = createExitGuard();
  private readonly removeExitHandler: () => void;

  /** @throws DEVICE_UNAVAILABLE when the device is not available. */
  constructor({ device = "auto", threads = system.countCores() }: RuntimeOptions = {}) {
    this.device = resolveDevice(device);
    this.threads = threads;
    this.worker = startWorker<WorkerResponse>(this.device === "webgpu" ? GPU_WORKER : RUNTIME_WORKER, {
      data: this.guard,
      onMessage: (response) => this.handleResponse(response),
      onError: (error) => this.fail(`The compute worker failed: ${error.message}.`, error),
      onExit: (code) => this.fail(`The compute worker ended with exit code ${code}.`),
    });
    this.removeExitHandler = waitAtExit(this.guard);
  }

  /** Loads a graph. @throws RUNTIME_FAILED when ONNX Runtime rejects it. */
  async createSession(graph: CompiledGraph, options: SessionOptions = {}): Promise<Session> {
    const { locate = missingWeight, folder, buffers = [], packWeights = true } = await readWeightFiles(graph, options);
    const session = this.nextId++;
    const { threads } = this;
    const hasPackedForms = graph.weights.some((weight) => locate(weight).packed !== undefined);
    const settings = { threads, folder, buffers, packWeights: packWeights || hasPackedForms };
    // With the packed forms of some weights, ONNX Runtime would also pack the others.
    const locateForSession = (weight: NamedTensorType): WeightLocation =>
      packWeights || !hasPackedForms ? { ...locate(weight), isVariable: false } : locate(weight);
    const transferred = new Set(
      buffers.map(({ data }) => data.buffer).filter((buffer) => buffer instanceof ArrayBuffer),
    );
    let request: WorkerRequest;
    if (this.device === "webgpu") {
      const { lowerGraph } = await import("../gpu/lower-graph.js");
      const weights = graph.weights.map((weight) => [weight.name, locate(weight)] as const);
      request = { kind: "createProgram", session, program: lowerGraph(graph), weights, folder, buffers };
    } else {
      const device = graph.hasInt8Products && (await this.getCodeType()) === "uint8" ? "cpu-uint8" : "cpu";
      request = { kind: "create", session, model: graph.serialize(locateForSession, device), settings };
    }
    await this.request(request, [...transferred]);
    return new Session(graph, session, (request) => this.request(request));
  }

  /**
   * Packs the frozen matrices of a graph as the kernels of this processor read them, into files in
   * a folder. Returns the packed forms by weight.
   */
  async packWeights(
    graph: CompiledGraph,
    { locate = missingWeight, folder }: Pick<SessionOptions, "locate" | "folder">,
    target: string,
  ): Promise<ReadonlyMap<string, readonly PackedForm[]>> {
    const { threads } = this;
    const settings = { threads, folder, buffers: [], packWeights: true };
    const saved = { folder: target, name: PACKED_NAME };
    await this.request({ kind: "pack", model: graph.serialize(locate, this.device), settings, saved });
    return readPackedForms(target, PACKED_NAME);
  }

  /**
   * Returns the type of 8-bit weights that this processor multiplies right and fastest. Of int8
   * codes, x86 without VNNI adds two products in 16 bits, which the largest ones exceed; of uint8
   * codes, processors with AMX multiply a tenth as many.
   */
  async getCodeType(): Promise<CodeType> {
    if (this.device === "webgpu") return "int8";
    return (await this.request({ kind: "detectInt8Overflow" })) === true ? "uint8" : "int8";
  }

  /** Allocates zeros in the worker; release them with `free`. */
  allocate(dtype: DType, shape: readonly number[]): BufferView {
    const buffer = this.nextId++;
    this.post({ kind: "allocate", buffer, bytes: byteLength(dtype, countElements(shape)) });
    return { dtype, shape, buffer, offset: 0 };
  }

  /** Frees the buffer that a view belongs to. */
  free({ buffer }: BufferView): void {
    this.post({ kind: "free", buffer });
  }

  async write(view: BufferView, data: TypedArray): Promise<void> {
    if (data.length !== countElements(view.shape))
      throw new LlamaGymError(
        "SHAPE_MISMATCH",
        `A view of shape [${view.shape.join(", ")}] requires ${countElements(view.shape)} elements, got ${data.length}.`,
      );
    await this.request({ kind: "write", view, data });
  }

  async read(view: BufferView): Promise<Tensor> {
    return (await this.request({ kind: "read", view })) as Tensor;
  }

  /** Runs a kernel and returns its result, if it has one. */
  async kernel(call: CpuKernelCall): Promise<KernelResult> {
    return (await this.request({ kind: "kernel", call })) as KernelResult;
  }

  /** Binds inputs and outputs in the worker, for loops that reuse the same buffers. */
  bind({
    feeds = {},
    fetches = {},
  }: {
    feeds?: Readonly<Record<string, BufferView>>;
    fetches?: Readonly<Record<string, BufferView>>;
  }): IoBinding {
    const id = this.nextId++;
    this.post({ kind: "bind", binding: id, feeds: Object.entries(feeds), fetches: Object.entries(fetches) });
    return { id, feeds, fetches };
  }

  unbind({ id }: IoBinding): void {
    this.post({ kind: "unbind", binding: id });
  }

  /** Returns the GPU that the runtime uses and what it has done so far. */
  async getGpuReport(): Promise<GpuReport> {
    return (await this.request({ kind: "counters" })) as GpuReport;
  }

  /** Runs requests in order with a single message and returns the last one's result. */
  async sequence(requests: readonly WorkerRequest[]): Promise<WorkerResult> {
    return this.request({ kind: "sequence", requests });
  }

  /**
   * Stops the worker after its pending requests: terminating it inside ONNX Runtime would crash the
   * process.
   */
  async close(): Promise<void> {
    const last =
      this.failure === undefined ? this.request({ kind: "sequence", requests: [] }).catch(() => {}) : undefined;
    this.failure ??= new LlamaGymError("RUNTIME_FAILED", "The runtime was closed.");
    await last;
    await this.worker.terminate();
    this.removeExitHandler();
  }

  /**
   * Sends a request whose result is not awaited; the worker reports its error when the result is
   * used.
   */
  private post(request: WorkerRequest): void {
    if (this.unsent.push(request) > 1) return;
    queueMicrotask(() => {
      if (this.unsent.length > 0) this.sequence([]).catch(() => {});
    });
  }

  private request(last: WorkerRequest, transfer: readonly ArrayBuffer[] = []): Promise<WorkerResult> {
    const unsent = this.unsent.splice(0);
    if (this.failure !== undefined) return Promise.reject(this.failure);
    const id = this.nextId++;
    const request: WorkerRequest = unsent.length === 0 ? last : { kind: "sequence", requests: [...unsent, last] };
    return new Promise((resolve, reject) => {
      if (this.pending.size === 0) this.worker.ref();
      this.pending.set(id, { resolve, reject });
      this.worker.post({ id, request }, transfer);
    });
  }

  private handleResponse(response: WorkerResponse): void {
    const pending = this.pending.get(response.id)!;
    this.pending.delete(response.id);
    if (this.pending.size === 0) this.worker.unref();
    if (response.ok) return pending.resolve(response.result);
    const { message, code } = response;
    const library = this.device === "webgpu" ? "GPU" : "ONNX Runtime";
    pending.reject(
      code === undefined
        ? new LlamaGymError("RUNTIME_FAILED", `${library}: ${message}`)
        : new LlamaGymError(code, message),
    );
  }

  private fail(message: string, cause?: Error): void {
    release(this.guard);
    this.failure ??= new LlamaGymError("RUNTIME_FAILED", message, { cause });
    for (const { reject } of this.pending.values()) reject(this.failure);
    this.pending.clear();
  }
}

/** Reads the weight files of a graph where the worker cannot open them. */
async function readWeightFiles(graph: CompiledGraph, options: SessionOptions): Promise<SessionOptions> {
  const { folder, locate = missingWeight, buffers = [] } = options;
  if (folder === undefined || system.opensFilesNatively) return options;
  const names = new Set(graph.weights.map((weight) => locate(weight).file));
  for (const { name } of buffers) names.delete(name);
  const files = [...names].map(async (name) => ({ name, data: await fs.readBytes(fs.join(folder, name)) }));
  return { ...options, folder: undefined, buffers: [...buffers, ...(await Promise.all(files))] };
}

function missingWeight({ name }: NamedTensorType): never {
  throw invalidArgument(`No location for weight "${name}". Pass \`locate\`.`);
}
