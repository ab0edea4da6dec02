import { parentPort, workerData } from "node:worker_threads";
import { InferenceSession, Tensor } from "onnxruntime-node";
import { dtypes, type DType, type TypedArray } from "../tensor/dtype.js";
import { elementCount, type Tensor as HostTensor } from "../tensor/tensor.js";
import { discard } from "./discard.js";
import { guarded, type ExitGuard } from "./exit-guard.js";
import { runKernel } from "./kernels.js";
import type { View } from "./buffer.js";
import type { Envelope, Request, Response, Result, RunRequest, SessionSettings } from "./protocol.js";

const port = parentPort!;
const guard = workerData as ExitGuard;
const sessions = new Map<number, InferenceSession>();
/** Memory, or what went wrong when it was asked for: told to whoever uses it. */
const buffers = new Map<number, ArrayBuffer | Error>();
const bindings = new Map<
  number,
  { readonly feeds: Record<string, Tensor>; readonly fetches: Record<string, Tensor> } | Error
>();

function sessionOptions({
  providers,
  threads,
  folder,
  buffers: files,
  packWeights,
  profile,
}: SessionSettings): InferenceSession.SessionOptions {
  return {
    executionProviders: [...providers],
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
    graphOptimizationLevel: "all",
    // A plan made for one shape costs more memory than it saves: 4.7 against 2.8 GB in a training step.
    enableMemPattern: false,
    // Errors are thrown; they need not be printed as well.
    logSeverityLevel: 4,
    ...(profile === undefined ? {} : { enableProfiling: true, profileFilePrefix: profile }),
    ...(files.length === 0 ? {} : { externalData: files.map(({ name, data }) => ({ path: name, data })) }),
    extra: {
      session: {
        ...(folder === undefined ? {} : { model_external_initializers_file_folder_path: folder }),
        // Weights that were packed are given back to the system, not kept by the arena.
        use_device_allocator_for_initializers: "1",
        // On processors without VNNI, products in 8 bits that saturate give way to somewhat slower ones that do not.
        x64quantprecision: "1",
        ...(packWeights ? {} : { disable_prepacking: "1" }),
      },
      // Graphs come without repetitions, but for those that are cheaper to compute again than to keep.
      optimization: { disable_specified_optimizers: "CommonSubexpressionElimination" },
    },
  };
}

/** What a number stands for; throws when that is gone, or when making it failed. */
function existing<T>(things: ReadonlyMap<number, T | Error>, id: number, gone: string): T {
  const thing = things.get(id) ?? new Error(gone);
  if (thing instanceof Error) throw thing;
  return thing;
}

/** A thing, or the error that making it gave, for things that nobody waits for. */
function attempt<T>(make: () => T): T | Error {
  try {
    return make();
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

function isView(value: HostTensor | View): value is View {
  return "buffer" in value;
}

function viewData({ dtype, shape, buffer, offset }: View): TypedArray {
  const memory = existing(buffers, buffer, "a buffer was used after it was freed");
  const { arrayType, bytes } = dtypes[dtype];
  return new arrayType(memory, offset * bytes, elementCount(shape));
}

function floats(view: View): Float32Array {
  if (view.dtype !== "float32") throw new Error(`a kernel works on float32, not on ${view.dtype}`);
  return viewData(view) as Float32Array;
}

function toOrt(value: HostTensor | View): Tensor {
  const data = isView(value) ? viewData(value) : value.data;
  return new Tensor(value.dtype as "float32", data as Float32Array, [...value.shape]);
}

function toOrtRecord(named: readonly (readonly [string, HostTensor | View])[]): Record<string, Tensor> {
  return Object.fromEntries(named.map(([name, value]) => [name, toOrt(value)]));
}

async function run({ session, bindings: bound, feeds, fetches }: RunRequest): Promise<Record<string, HostTensor>> {
  const allFeeds = toOrtRecord(feeds);
  const allFetches: Record<string, Tensor | null> = {};
  for (const [name, view] of fetches) allFetches[name] = view === undefined ? null : toOrt(view);
  for (const id of bound) {
    const binding = existing(bindings, id, "a binding was used after it was undone");
    Object.assign(allFeeds, binding.feeds);
    Object.assign(allFetches, binding.fetches);
  }
  const results = await existing(sessions, session, "a session was used after it was released").run(
    allFeeds,
    allFetches,
  );
  const returned = fetches.filter(([, view]) => view === undefined);
  return Object.fromEntries(
    returned.map(([name]) => {
      const { type, dims, data } = results[name];
      return [name, { dtype: type as DType, shape: [...dims], data: data as TypedArray }];
    }),
  );
}

async function handle(request: Request): Promise<Result> {
  switch (request.kind) {
    case "create":
      sessions.set(request.session, await InferenceSession.create(request.model, sessionOptions(request.settings)));
      discard(request.settings.buffers.map(({ data }) => data.buffer));
      return undefined;
    case "run":
      return run(request);
    case "release":
      await sessions.get(request.session)?.release();
      sessions.delete(request.session);
      return undefined;
    case "bind":
      bindings.set(
        request.binding,
        attempt(() => ({ feeds: toOrtRecord(request.feeds), fetches: toOrtRecord(request.fetches) })),
      );
      return undefined;
    case "unbind":
      bindings.delete(request.binding);
      return undefined;
    case "sequence": {
      let result: Result;
      for (const step of request.requests) result = await handle(step);
      return result;
    }
    case "allocate":
      buffers.set(
        request.buffer,
        attempt(() => new ArrayBuffer(request.bytes)),
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
      return runKernel(request.call, floats);
  }
}

/** Memory of results, handed over to the caller's thread without a copy. */
function transferable(result: Result): ArrayBuffer[] {
  if (typeof result !== "object" || ArrayBuffer.isView(result)) return [];
  // One tensor or several by name: the names are the graph's, and may be anything.
  const data = [result, ...Object.values(result)].map((value) => (value as Partial<HostTensor> | undefined)?.data);
  return [...new Set(data.flatMap((each) => (ArrayBuffer.isView(each) ? [each.buffer as ArrayBuffer] : [])))];
}

// One request after another: a kernel must see what the run before it wrote.
let queue: Promise<void> = Promise.resolve();
port.on("message", ({ id, request }: Envelope) => {
  queue = queue.then(async () => {
    let response: Response;
    try {
      response = { id, ok: true, result: await guarded(guard, () => handle(request)) };
    } catch (error) {
      response = { id, ok: false, message: error instanceof Error ? error.message : String(error) };
    }
    port.postMessage(response, response.ok ? transferable(response.result) : []);
  });
});
