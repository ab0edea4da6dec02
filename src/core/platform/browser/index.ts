import { sha1 } from "@noble/hashes/legacy.js";
import { sha256 } from "@noble/hashes/sha2.js";
import { encodeUtf8 } from "../../bytes.js";
import { LlamaGymError } from "../../errors.js";
import type {
  Assets,
  ComputeWorker,
  FileSystem,
  ParentConnection,
  Platform,
  RunningHash,
  System,
  WebWorker,
  WorkerOptions,
  WorkerSource,
} from "../ports.js";
import { MemoryFileSystem } from "./files.js";
import { join } from "./paths.js";

/** The global scope, of the page or of a worker. */
const host = globalThis as unknown as Pick<WebWorker, "postMessage" | "addEventListener"> & {
  readonly crossOriginIsolated?: boolean;
  readonly navigator: { readonly hardwareConcurrency?: number; readonly deviceMemory?: number };
};

/** Root of the package in the file system of the page. */
const PACKAGE = "/llamagym";

// Bundlers replace these URLs, which must be literal.
export const fs: FileSystem = new MemoryFileSystem({
  [`${PACKAGE}/models/llamagym-1m/config.json`]: new URL("../../../../models/llamagym-1m/config.json", import.meta.url),
  [`${PACKAGE}/models/llamagym-1m/generation_config.json`]: new URL(
    "../../../../models/llamagym-1m/generation_config.json",
    import.meta.url,
  ),
  [`${PACKAGE}/models/llamagym-1m/model.safetensors`]: new URL(
    "../../../../models/llamagym-1m/model.safetensors",
    import.meta.url,
  ),
  [`${PACKAGE}/models/llamagym-1m/tokenizer.json`]: new URL(
    "../../../../models/llamagym-1m/tokenizer.json",
    import.meta.url,
  ),
  [`${PACKAGE}/models/llamagym-1m/tokenizer_config.json`]: new URL(
    "../../../../models/llamagym-1m/tokenizer_config.json",
    import.meta.url,
  ),
});

const GIBIBYTE = 2 ** 30;
/** What browsers report at most, and do not report at all in some. */
const DEFAULT_MEMORY_GIB = 8;

export const system: System = {
  env: {},
  pid: 1,
  os: "browser",
  arch: "wasm32",
  homeFolder: "/home",
  tempFolder: "/tmp",
  hostname: "browser",
  opensFilesNatively: false,
  // Threads of WebAssembly share memory, which only pages isolated from other origins may do.
  countCores: () => (host.crossOriginIsolated === true ? (host.navigator.hardwareConcurrency ?? 1) : 1),
  memoryBytes: () => (host.navigator.deviceMemory ?? DEFAULT_MEMORY_GIB) * GIBIBYTE,
  pidNamespace: "",
  isProcessRunning: (pid) => pid === 1,
  getProcessStart: () => "",
  isDebuggerAttached: () => false,
  onExit: () => () => {},
  watchOpenWork: () => () => {},
};

export const assets: Assets = {
  path: (relativePath) => join(PACKAGE, relativePath),
  resolve(specifier) {
    throw new Error(`There is no module ${specifier} in a browser.`);
  },
  importModule: (url) => import(/* @vite-ignore */ url) as Promise<Readonly<Record<string, unknown>>>,
};

export function startWorker<Response>(
  source: WorkerSource,
  { data, onMessage, onError }: WorkerOptions<Response>,
): ComputeWorker {
  if (typeof source === "string")
    throw new LlamaGymError("INVALID_ARGUMENT", `The worker ${source} needs Node.js. In a browser, leave it out.`);
  const worker = source();
  worker.addEventListener("message", (event) => onMessage(event.data as Response));
  worker.addEventListener("error", (event) => onError(new Error(event.message ?? "it could not be loaded")));
  worker.postMessage(data);
  return {
    post: (message, transfer = []) => worker.postMessage(message, transfer),
    ref: () => {},
    unref: () => {},
    terminate: async () => worker.terminate(),
  };
}

/** The first message of the parent is the worker's data. */
export function connectToParent<Request, Data>(): ParentConnection<Request, Data> {
  let received: { readonly data: Data } | undefined;
  let handle: ((message: Request) => void) | undefined;
  const waiting: Request[] = [];
  host.addEventListener("message", ({ data }) => {
    if (received === undefined) received = { data: data as Data };
    else if (handle === undefined) waiting.push(data as Request);
    else handle(data as Request);
  });
  return {
    get data() {
      return received!.data;
    },
    onStart: () => {},
    post: (message, transfer = []) => host.postMessage(message, transfer),
    onMessage(handler) {
      handle = handler;
      for (const message of waiting.splice(0)) handler(message);
    },
  };
}

export function createHash(algorithm: "sha1" | "sha256"): RunningHash {
  return wrapHash((algorithm === "sha1" ? sha1 : sha256).create());
}

interface NobleHash {
  update(data: Uint8Array): unknown;
  clone(): NobleHash;
  digest(): Uint8Array;
}

function wrapHash(hash: NobleHash): RunningHash {
  const running: RunningHash = {
    update(data) {
      hash.update(typeof data === "string" ? encodeUtf8(data) : data);
      return running;
    },
    copy: () => wrapHash(hash.clone()),
    hex: () => Array.from(hash.digest(), (byte) => byte.toString(16).padStart(2, "0")).join(""),
  };
  return running;
}

export async function gzip(text: string): Promise<Uint8Array<ArrayBuffer>> {
  const stream = new Blob([text]).stream().pipeThrough(new CompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

const channel = new MessageChannel();
const turns: (() => void)[] = [];
channel.port1.addEventListener("message", () => turns.shift()?.());
channel.port1.start();

export function yieldToEventLoop(): Promise<void> {
  return new Promise((done) => {
    turns.push(done);
    channel.port2.postMessage(undefined);
  });
}

({ fs, system, assets, startWorker, connectToParent, createHash, gzip, yieldToEventLoop }) satisfies Platform;
