import { connectToParent } from "#platform";
import { CPU_PROVIDER, createSession, type InferenceSession, runSession, Tensor } from "#onnxruntime";
import { dtypes, type DType, type TypedArray } from "../tensor/dtype.js";
import { type Tensor as HostTensor } from "../tensor/tensor.js";
import { countElements } from "../../core/numbers.js";
import { releaseMemory } from "./release-memory.js";
import type { ExitGuard } from "./exit-guard.js";
import { serveRequests } from "./serve-requests.js";
import { detectInt8Overflow } from "./detect-int8-overflow.js";
import { runKernel } from "./kernels/run-kernel.js";
import type { BufferView } from "./buffer-view.js";
import type { WorkerMessage, WorkerRequest, WorkerResult, RunRequest, SessionConfig } from "./worker-protocol.js";

const parent = connectToParent<WorkerMessage, ExitGuard>();
const sessions = new Map<number, InferenceSession>();
/** Allocated memory, or the allocation error, which is thrown on use. */
const buffers = new Map<number, ArrayBuffer | Error>();
const bindings = new Map<
  number,
  { readonly feeds: Record<string, Tensor>; readonly fetches: Record<string, Tensor> } | Error
>();

function sessionOptions({
  threads,
  folder,
  buffers: files,
  packWeights,
}: SessionConfig): InferenceSession.SessionOptions {
  return {
    executionProviders: [CPU_PROVIDER],
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
    graphOptimizationLevel: "all",
    // A plan per shape costs more memory than it saves: 4.7 against 2.8 GB in a training step.
    enableMemPattern: false,
    // Errors are thrown, so logging them would be redundant.
    logSeverityLevel: 4,
    ...(files.length === 0 ? {} : { externalData: files.map(({ name, data }) => ({ path: name, data })) }),
    extra: {
      session: {
        ...(folder === undefined ? {} : { model_external_initializers_file_folder_path: folder }),
        // Returns the memory of packed weights to the system instead of keeping it in the arena.
        use_device_allocator_for_initializers: "1",
        ...(packWeights ? {} : { disable_prepacking: "1" }),
      },
      // Graphs contain no common subexpressions except those that are cheaper to recompute than to
      // keep.
      optimization: { disable_specified_optimizers: "CommonSubexpressionElimination" },
    },
  };
}

/** Returns the value with an id, or throws when it is missing or its creation failed. */
function getOrThrow<T>(values: ReadonlyMap<number, T | Error>, id: number, message: string): T {
  const value = values.get(id) ?? new Error(message);
  if (value instanceof Error) throw value;
  return value;
}

/** Returns the created value or the error, for requests whose result is not awaited. */
function tryCreate<T>(create: () => T): T | Error {
  try {
    return create();
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

function isBufferView(value: HostTensor | BufferView): value is BufferView {
  return "buffer" in value;
}

function viewData({ dtype, shape, buffer, offset }: BufferView): TypedArray {
  const memory = getOrThrow(buffers, buffer, "buffer used after it was freed");
  const { arrayType, bytes } = dtypes[dtype];
  return new arrayType(memory, offset * bytes, countElements(shape));
}

function float32Data(view: BufferView): Float32Array {
  if (view.dtype !== "float32") throw new Error(`kernels require float32, got ${view.dtype}`);
  return viewData(view) as Float32Array;
}

function toOrtTensor(value: HostTensor | BufferView): Tensor {
  const data = isBufferView(value) ? viewData(value) : value.data;
  return new Tensor(value.dtype as "float32", data as Float32Array, [...value.shape]);
}

function toOrtRecord(named: readonly (readonly [string, HostTensor | BufferView])[]): Record<string, Tensor> {
  return Object.fromEntries(named.map(([name, value]) => [name, toOrtTensor(value)]));
}

async function run({ session, bindings: boundIds, feeds, fetches }: RunRequest): Promise<Record<string, HostTensor>> {
  const allFeeds = toOrtRecord(feeds);
  const allFetches: Record<string, Tensor | null> = {};
  for (const [name, view] of fetches) allFetches[name] = view === undefined ? null : toOrtTensor(view);
  for (const id of boundIds) {
    const binding = getOrThrow(bindings, id, "binding used after unbind");
    Object.assign(allFeeds, binding.feeds);
    Object.assign(allFetches, binding.fetches);
  }
  const loaded = getOrThrow(sessions, session, "session used after it was released");
  const results = await runSession(loaded, allFeeds, allFetches);
  const returned = fetches.filter(([, view]) => view === undefined);
  return Object.fromEntries(
    returned.map(([name]) => {
      const { type, dims, data } = results[name];
      return [name, { dtype: type as DType, shape: [...dims], data: data as TypedArray }];
    }),
  );
}

async function handle(request: WorkerRequest): Promise<WorkerResult> {
  switch (request.kind) {
    case "create": {
      const { model, settings } = request;
      sessions.set(request.session, await createSession(model, sessionOptions(settings)));
      releaseMemory(settings.buffers.map(({ data }) => data.buffer));
      return undefined;
    }
    case "pack": {
      const { model, settings, saved } = request;
      const options = sessionOptions(settings);
      const session = await createSession(model, {
        ...options,
        optimizedModelFilePath: `${saved.folder}/${saved.name}.onnx`,
        extra: {
          ...options.extra,
          session: {
            ...(options.extra!.session as Record<string, unknown>),
            save_external_prepacked_constant_initializers: "1",
            optimized_model_external_initializers_file_name: `${saved.name}.bin`,
            optimized_model_external_initializers_min_size_in_bytes: "0",
          },
        },
      });
      await session.release();
      return undefined;
    }
    case "detectInt8Overflow":
      return detectInt8Overflow();
    case "run":
      return run(request);
    case "release":
      await sessions.get(request.session)?.release();
      sessions.delete(request.session);
      return undefined;
    case "bind":
      bindings.set(
        request.binding,
        tryCreate(() => ({ feeds: toOrtRecord(request.feeds), fetches: toOrtRecord(request.fetches) })),
      );
      return undefined;
    case "unbind":
      bindings.delete(request.binding);
      return undefined;
    case "sequence": {
      let result: WorkerResult;
      for (const step of request.requests) result = await handle(step);
      return result;
    }
    case "allocate":
      buffers.set(
        request.buffer,
        tryCreate(() => new ArrayBuffer(request.bytes)),
      );
      return undefined;
    case "free":
      buffers.delete(request.buffer);
      return undefined;
    case "write":
      viewData(request.view).set(request.data as never);
      return undefined;
    case "read": {
      const data = viewData(request.view).slice();
      return { dtype: request.view.dtype, shape: request.view.shape, data };
    }
    case "kernel":
      return runKernel(request.call, float32Data);
    case "createProgram":
    case "counters":
      throw new Error(`${request.kind} is for GPUs`);
  }
}

serveRequests(parent, handle);
