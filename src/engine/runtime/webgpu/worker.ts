import { connectToParent } from "#platform";
import { countElements } from "../../../core/numbers.js";
import { LazyPromise } from "../../../core/promise-cache.js";
import { fromWords, toWords } from "../../gpu/words.js";
import { byteLength } from "../../tensor/dtype.js";
import type { Tensor } from "../../tensor/tensor.js";
import type { BufferView } from "../buffer-view.js";
import type { ExitGuard } from "../exit-guard.js";
import { releaseMemory } from "../release-memory.js";
import { serveRequests } from "../serve-requests.js";
import type { RunRequest, WorkerMessage, WorkerRequest, WorkerResult } from "../worker-protocol.js";
import { Arena } from "./arena.js";
import { checkGpu } from "./check-gpu.js";
import { GpuExecutor, type Location } from "./gpu-executor.js";
import type { DeviceBuffer } from "./gpu-pipelines.js";
import { GpuKernels } from "./gpu-kernels.js";
import { GpuSession } from "./gpu-session.js";
import type { GpuContext } from "./plan-builder.js";
import { WeightCache } from "./weight-cache.js";

interface Binding {
  readonly feeds: readonly (readonly [string, BufferView])[];
  readonly fetches: readonly (readonly [string, BufferView])[];
}

/** Everything on one GPU that a worker owns. */
class GpuWorker {
  private readonly sessions = new Map<number, GpuSession>();
  private readonly buffers = new Map<number, DeviceBuffer | Error>();
  private readonly bindings = new Map<number, Binding>();
  private readonly context: GpuContext;
  private readonly kernels: GpuKernels;
  private readonly weights: WeightCache;

  private constructor(private readonly executor: GpuExecutor) {
    this.context = { executor, arena: new Arena(executor), locate: (view) => this.locate(view) };
    this.kernels = new GpuKernels(this.context);
    this.weights = new WeightCache(executor);
  }

  static async open(): Promise<GpuWorker> {
    const executor = await GpuExecutor.open();
    await checkGpu(executor);
    return new GpuWorker(executor);
  }

  async handle(request: WorkerRequest): Promise<WorkerResult> {
    this.executor.checkErrors();
    switch (request.kind) {
      case "createProgram": {
        const { session, program, weights, folder, buffers } = request;
        const loaded = await this.weights.load(session, weights, folder, buffers);
        releaseMemory(buffers.map(({ data }) => data.buffer));
        this.sessions.set(session, new GpuSession(this.context, program, loaded));
        return undefined;
      }
      case "run":
        return this.run(request);
      case "release":
        this.sessions.get(request.session)?.release();
        this.sessions.delete(request.session);
        this.weights.release(request.session);
        return undefined;
      case "bind":
        this.bindings.set(request.binding, request);
        return undefined;
      case "unbind":
        this.bindings.delete(request.binding);
        return undefined;
      case "sequence": {
        let result: WorkerResult;
        for (const step of request.requests) result = await this.handle(step);
        return result;
      }
      case "allocate":
        this.allocate(request.buffer, request.bytes);
        return undefined;
      case "free": {
        const buffer = this.buffers.get(request.buffer);
        this.buffers.delete(request.buffer);
        if (buffer !== undefined && !(buffer instanceof Error)) this.executor.destroyBuffer(buffer);
        return undefined;
      }
      case "write": {
        const { view, data } = request;
        this.executor.write(this.locate(view), toWords(view.dtype, data));
        return undefined;
      }
      case "read":
        return this.read(request.view);
      case "kernel":
        return this.kernels.run(request.call);
      case "counters":
        return {
          adapter: this.executor.name,
          features: this.executor.features,
          maxBufferBytes: 4 * this.executor.maxBufferWords,
          counters: { ...this.executor.counters },
        };
      case "create":
      case "detectInt8Overflow":
      case "pack":
        throw new Error("a GPU runs programs, not ONNX graphs");
    }
  }

  private allocate(id: number, bytes: number): void {
    try {
      this.buffers.set(id, this.executor.createBuffer(Math.ceil(bytes / 4)));
    } catch (error) {
      // Reported when the buffer is used, as the request is not awaited.
      this.buffers.set(id, error as Error);
    }
  }

  private locate({ buffer: id, offset, dtype }: BufferView): Location {
    const buffer = this.buffers.get(id) ?? new Error("buffer used after it was freed");
    if (buffer instanceof Error) throw buffer;
    if (byteLength(dtype, 1) !== 4) throw new Error(`buffers on a GPU hold float32 or int32, got ${dtype}`);
    return { buffer, start: offset };
  }

  private async read(view: BufferView): Promise<Tensor> {
    const [words] = await this.executor.read([{ ...this.locate(view), words: countElements(view.shape) }]);
    return { dtype: view.dtype, shape: view.shape, data: fromWords(view.dtype, words.slice()) };
  }

  private async run({ session: id, bindings, feeds, fetches }: RunRequest): Promise<Record<string, Tensor>> {
    const session = this.sessions.get(id);
    if (session === undefined) throw new Error("session used after it was released");
    const allFeeds = new Map<string, Tensor | BufferView>(feeds);
    const allFetches = new Map<string, BufferView | undefined>(fetches);
    for (const bound of bindings) {
      const binding = this.bindings.get(bound);
      if (binding === undefined) throw new Error("binding used after unbind");
      for (const [name, view] of binding.feeds) allFeeds.set(name, view);
      for (const [name, view] of binding.fetches) allFetches.set(name, view);
    }
    return session.run({ feeds: allFeeds, fetches: allFetches });
  }
}

const worker = new LazyPromise(() => GpuWorker.open());
serveRequests(connectToParent<WorkerMessage, ExitGuard>(), async (request) => (await worker.get()).handle(request));
