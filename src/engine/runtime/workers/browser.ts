import type { WebWorker } from "../../../core/platform/ports.js";

declare const Worker: new (url: URL, options: { readonly type: "module" }) => WebWorker;

// Bundlers find workers by these expressions. They are not in `#platform`, which workers import.
export const RUNTIME_WORKER = () => new Worker(new URL("../worker.js", import.meta.url), { type: "module" });
export const GPU_WORKER = () => new Worker(new URL("../webgpu/worker.js", import.meta.url), { type: "module" });
