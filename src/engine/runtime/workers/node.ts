/** Compute workers, as `startWorker` finds them. */
export const RUNTIME_WORKER = "#runtime-worker";
export const GPU_WORKER = "#gpu-worker";
