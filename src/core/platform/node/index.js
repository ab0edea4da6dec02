import { createHash as createNodeHash } from "node:crypto";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { availableParallelism, homedir, hostname, tmpdir, totalmem } from "node:os";
import { url as inspectorUrl } from "node:inspector";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { parentPort, Worker, workerData } from "node:worker_threads";
import { gzip as compress, gzipSync } from "node:zlib";
import { printWarning } from "../../terminal-text.js";
import { LlamaGymError } from "../../errors.js";
import { nodeFileSystem } from "./files.js";
import { getProcessStart, isProcessRunning, readPidNamespace } from "./processes.js";
export const fs = nodeFileSystem;
const exitHandlers = new Set();
function onExit(handler) {
    // One listener for all: Node.js reports many as a leak.
    if (exitHandlers.size === 0)
        process.once("exit", runExitHandlers);
    exitHandlers.add(handler);
    return () => {
        exitHandlers.delete(handler);
        if (exitHandlers.size === 0)
            process.off("exit", runExitHandlers);
    };
}
function runExitHandlers() {
    for (const handler of exitHandlers)
        handler();
}
/** Node's status of a process whose event loop is empty while a top-level await is pending. */
const UNSETTLED_EXIT_CODE = 13;
const openWork = new Set();
function watchOpenWork(describe) {
    if (openWork.size === 0)
        process.on("beforeExit", reportOpenWork);
    openWork.add(describe);
    return () => {
        openWork.delete(describe);
        if (openWork.size === 0)
            process.off("beforeExit", reportOpenWork);
    };
}
function reportOpenWork() {
    // The innermost work says what it waited for; what contains it, how to continue.
    for (const describe of [...openWork].reverse())
        printWarning(describe());
    openWork.clear();
    process.off("beforeExit", reportOpenWork);
    process.exitCode = UNSETTLED_EXIT_CODE;
}
function countCores() {
    const limit = Number(process.env.OMP_NUM_THREADS);
    return Number.isInteger(limit) && limit >= 1 ? limit : availableParallelism();
}
export const system = {
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
function findPackageRoot() {
    // Bundles in CommonJS have no import.meta.url.
    const root = new URL("../../../../", import.meta.url ?? "file:///");
    if (existsSync(new URL(WORKER_FILE, root)))
        return root;
    throw new LlamaGymError("RUNTIME_FAILED", "llamagym was bundled and cannot find its workers and models. Declare `llamagym` and `onnxruntime-node` as external " +
        "packages in the bundler's settings; docs/installation.md lists them.");
}
export const assets = {
    path: (relativePath) => fileURLToPath(new URL(relativePath, findPackageRoot())),
    resolve: (specifier) => createRequire(new URL(WORKER_FILE, findPackageRoot())).resolve(specifier),
};
export function startWorker(source, { data, inheritFlags = false, onMessage, onError, onExit: onWorkerExit }) {
    // Resolves to the built file, even when this one runs from source: Node.js 20 runs no TypeScript.
    const worker = new Worker(assets.resolve(source), {
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
export function connectToParent() {
    const port = parentPort;
    return {
        data: workerData,
        post: (message, transfer) => port.postMessage(message, transfer),
        onMessage: (handler) => void port.on("message", handler),
    };
}
export function createHash(algorithm) {
    return wrapHash(createNodeHash(algorithm));
}
function wrapHash(hash) {
    const running = {
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
export async function gzip(text) {
    return text.length < MIN_THREAD_LENGTH ? gzipSync(text) : compressInThread(text);
}
export function yieldToEventLoop() {
    return new Promise((done) => setImmediate(done));
}
({ fs, system, assets, startWorker, connectToParent, createHash, gzip, yieldToEventLoop });
