import { createHash as createNodeHash, type Hash } from "node:crypto";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { availableParallelism, homedir, hostname, tmpdir, totalmem } from "node:os";
import { url as inspectorUrl } from "node:inspector";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { parentPort, Worker, workerData } from "node:worker_threads";
import { gzip as compress, gzipSync } from "node:zlib";
import { printWarning } from "../../terminal-text.js";
import type { Jiti } from "jiti";
import type {
  Assets,
  ComputeWorker,
  FileSystem,
  ParentConnection,
  Platform,
  RunningHash,
  System,
  WorkerOptions,
  WorkerSource,
} from "../ports.js";
import { LlamaGymError } from "../../errors.js";
import { nodeFileSystem } from "./files.js";
import { getProcessStart, isProcessRunning, readPidNamespace } from "./processes.js";

export const fs: FileSystem = nodeFileSystem;

const exitHandlers = new Set<() => void>();

function onExit(handler: () => void): () => void {
  // One listener for all: Node.js reports many as a leak.
  if (exitHandlers.size === 0) process.once("exit", runExitHandlers);
  exitHandlers.add(handler);
  return () => {
    exitHandlers.delete(handler);
    if (exitHandlers.size === 0) process.off("exit", runExitHandlers);
  };
}

function runExitHandlers(): void {
  for (const handler of exitHandlers) handler();
}

/** Node's status of a process whose event loop is empty while a top-level await is pending. */
const UNSETTLED_EXIT_CODE = 13;

const openWork = new Set<() => string>();

function watchOpenWork(describe: () => string): () => void {
  if (openWork.size === 0) process.on("beforeExit", reportOpenWork);
  openWork.add(describe);
  return () => {
    openWork.delete(describe);
    if (openWork.size === 0) process.off("beforeExit", reportOpenWork);
  };
}

function reportOpenWork(): void {
  // The innermost work says what it waited for; what contains it, how to continue.
  for (const describe of [...openWork].reverse()) printWarning(describe());
  openWork.clear();
  process.off("beforeExit", reportOpenWork);
  process.exitCode = UNSETTLED_EXIT_CODE;
}

function countCores(): number {
  const limit = Number(process.env.OMP_NUM_THREADS);
  return Number.isInteger(limit) && limit >= 1 ? limit : availableParallelism();
}

export const system: System = {
  env: process.env,
  pid: process.pid,
  os: process.platform,
  arch: process.arch,
  get homeFolder() {
    return homedir();
  },
  get tempFolder() {
    return tmpdir();
  },
  get hostname() {
    return hostname();
  },
  opensFilesNatively: true,
  countCores,
  memoryBytes() {
    const limit = process.constrainedMemory();
    return limit > 0 ? Math.min(totalmem(), limit) : totalmem();
  },
  pidNamespace: readPidNamespace(),
  isProcessRunning,
  getProcessStart,
  isDebuggerAttached: () => inspectorUrl() !== undefined,
  onExit,
  watchOpenWork,
};

const WORKER_FILE = "dist/engine/runtime/worker.js";

/** @throws RUNTIME_FAILED in a bundle, which contains neither workers nor the embedded model. */
function findPackageRoot(): URL {
  // Bundles in CommonJS have no import.meta.url.
  const root = new URL("../../../../", import.meta.url ?? "file:///");
  if (existsSync(new URL(WORKER_FILE, root))) return root;
  throw new LlamaGymError(
    "RUNTIME_FAILED",
    "llamagym was bundled and cannot find its workers and models. Declare `llamagym` and `onnxruntime-node` as external " +
      "packages in the bundler's settings; docs/installation.md lists them.",
  );
}

export const assets: Assets = {
  path: (relativePath) => fileURLToPath(new URL(relativePath, findPackageRoot())),
  resolve: (specifier) => createRequire(new URL(WORKER_FILE, findPackageRoot())).resolve(specifier),
  async importModule(url) {
    if (!/\.[cm]?ts$/.test(url)) return (await import(url)) as Readonly<Record<string, unknown>>;
    return (await loadTypeScript()).import(url);
  },
};

let typeScript: Promise<Jiti> | undefined;

/**
 * Returns what imports TypeScript files on each version of Node.js, also those that a file imports
 * as ./name.js. One for all: a file that two modules import is run once.
 */
function loadTypeScript(): Promise<Jiti> {
  typeScript ??= import("jiti").then(({ createJiti }) =>
    createJiti(import.meta.url, { fsCache: false, interopDefault: false }),
  );
  return typeScript;
}

export function startWorker<Response>(
  source: WorkerSource,
  { data, inheritFlags = false, onMessage, onError, onExit: onWorkerExit }: WorkerOptions<Response>,
): ComputeWorker {
  // Resolves to the built file, even when this one runs from source: Node.js 20 runs no TypeScript.
  const worker = new Worker(assets.resolve(source as string), {
    workerData: data,
    ...(inheritFlags ? {} : { execArgv: [] }),
  });
  worker.on("message", onMessage).on("error", onError).on("exit", onWorkerExit).unref();
  return {
    post: (message, transfer) => worker.postMessage(message, transfer),
    ref: () => worker.ref(),
    unref: () => worker.unref(),
    terminate: async () => void (await worker.terminate()),
  };
}

export function connectToParent<Request, Data>(): ParentConnection<Request, Data> {
  const port = parentPort!;
  return {
    data: workerData as Data,
    onStart: (handler) => handler(workerData as Data),
    post: (message, transfer) => port.postMessage(message, transfer),
    onMessage: (handler) => void port.on("message", handler),
  };
}

export function createHash(algorithm: "sha1" | "sha256"): RunningHash {
  return wrapHash(createNodeHash(algorithm));
}

function wrapHash(hash: Hash): RunningHash {
  const running: RunningHash = {
    update(data) {
      hash.update(data);
      return running;
    },
    copy: () => wrapHash(hash.copy()),
    hex: () => hash.digest("hex"),
  };
  return running;
}

const compressInThread = promisify(compress);
/** Shorter texts are compressed in less time than another thread needs to start on them. */
const MIN_THREAD_LENGTH = 2 ** 18;

export async function gzip(text: string): Promise<Uint8Array<ArrayBuffer>> {
  return text.length < MIN_THREAD_LENGTH ? gzipSync(text) : compressInThread(text);
}

export function yieldToEventLoop(): Promise<void> {
  return new Promise((done) => setImmediate(done));
}

({ fs, system, assets, startWorker, connectToParent, createHash, gzip, yieldToEventLoop }) satisfies Platform;
