/**
 * Keeps the process from ending while its worker is inside ONNX Runtime, which would end it with a crash: memory of both threads
 * that says whether the worker computes, and whether the process is about to end.
 */
export type ExitGuard = Int32Array<SharedArrayBuffer>;

const BUSY = 0;
const EXITING = 1;

/** Longer than any single step takes; a computation that hangs must not hold the process for ever. */
const SHUTDOWN_TIMEOUT_MS = 30_000;

export function createExitGuard(): ExitGuard {
  return new Int32Array(new SharedArrayBuffer(8));
}

/** In the worker: runs the work, unless the process is ending; then nothing is done any more, and nothing returned. */
export async function runGuarded<Result>(guard: ExitGuard, task: () => Promise<Result>): Promise<Result> {
  Atomics.store(guard, BUSY, 1);
  const isExiting = Atomics.load(guard, EXITING) === 1;
  try {
    if (!isExiting) return await task();
  } finally {
    Atomics.store(guard, BUSY, 0);
    Atomics.notify(guard, BUSY);
  }
  return new Promise<never>(() => {});
}

/** When the process ends by itself: waits for the step that the worker is in. Gives a function that takes this back. */
export function waitAtExit(guard: ExitGuard): () => void {
  const wait = () => {
    Atomics.store(guard, EXITING, 1);
    Atomics.wait(guard, BUSY, 1, SHUTDOWN_TIMEOUT_MS);
  };
  // Many runtimes may live at a time, more than Node takes for a leak.
  process.setMaxListeners(Math.max(process.getMaxListeners(), process.listenerCount("exit") + 2));
  process.on("exit", wait);
  return () => process.off("exit", wait);
}
