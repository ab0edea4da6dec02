import { parentPort } from "node:worker_threads";
import { InferenceSession, Tensor } from "onnxruntime-node";
import { dtypes, type DType, type TypedArray } from "../tensor/dtype.js";
import { elementCount } from "../tensor/tensor.js";
import { runKernel } from "./kernels.js";
import type { Envelope, Request, Response, Result, SessionSettings, WireTensor, WireView } from "./protocol.js";

const port = parentPort!;
const sessions = new Map<number, InferenceSession>();
const buffers = new Map<number, ArrayBuffer>();

function sessionOptions({
  providers,
  threads,
  folder,
  buffers: files,
  profile,
}: SessionSettings): InferenceSession.SessionOptions {
  return {
    executionProviders: [...providers],
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
    graphOptimizationLevel: "all",
    // A plan made for one shape costs more memory than it saves: 4.7 against 2.8 GB in a training step.
    enableMemPattern: false,
    logSeverityLevel: 3,
    ...(profile === undefined ? {} : { enableProfiling: true, profileFilePrefix: profile }),
    ...(files.length === 0 ? {} : { externalData: files.map(({ name, data }) => ({ path: name, data })) }),
    ...(folder === undefined ? {} : { extra: { session: { model_external_initializers_file_folder_path: folder } } }),
  };
}

function isView(value: WireTensor | WireView): value is WireView {
  return "buffer" in value;
}

function viewData({ dtype, shape, buffer, offset }: WireView): TypedArray {
  const memory = buffers.get(buffer);
  if (memory === undefined) throw new Error("a buffer was used after it was freed");
  const { arrayType, bytes } = dtypes[dtype];
  return new arrayType(memory, offset * bytes, elementCount(shape));
}

function toOrt(value: WireTensor | WireView): Tensor {
  const data = isView(value) ? viewData(value) : value.data;
  return new Tensor(value.dtype as "float32", data as Float32Array, [...value.shape]);
}

async function run({
  session,
  feeds,
  fetches,
}: Extract<Request, { kind: "run" }>): Promise<Record<string, WireTensor>> {
  const results = await sessions
    .get(session)!
    .run(
      Object.fromEntries(feeds.map(([name, value]) => [name, toOrt(value)])),
      Object.fromEntries(fetches.map(([name, view]) => [name, view === undefined ? null : toOrt(view)])),
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
      return undefined;
    case "run":
      return run(request);
    case "release":
      await sessions.get(request.session)?.release();
      sessions.delete(request.session);
      return undefined;
    case "allocate":
      buffers.set(request.buffer, new ArrayBuffer(request.bytes));
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
      return runKernel(request.call, (view) => viewData(view) as Float32Array);
  }
}

/** Memory of results, handed over to the caller's thread without a copy. */
function transferable(result: Result): ArrayBuffer[] {
  if (typeof result !== "object") return [];
  const tensors = "dtype" in result ? [result as WireTensor] : Object.values(result);
  return [...new Set(tensors.map(({ data }) => data.buffer as ArrayBuffer))];
}

// One request after another: a kernel must see what the run before it wrote.
let queue: Promise<void> = Promise.resolve();
port.on("message", ({ id, request }: Envelope) => {
  queue = queue.then(async () => {
    let response: Response;
    try {
      response = { id, ok: true, result: await handle(request) };
    } catch (error) {
      response = { id, ok: false, message: error instanceof Error ? error.message : String(error) };
    }
    port.postMessage(response, response.ok ? transferable(response.result) : []);
  });
});
