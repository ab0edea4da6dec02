import { system } from "#platform";

/**
 * Shared flags that keep the process from exiting while its worker loads ONNX Runtime or is inside
 * it, which would crash.
 */
export type ExitGuard = Int32Array<ArrayBufferLike>;

const BUSY = 0;
const EXITING = 1;

/** Longer than any single request; a hanging computation must not block the exit forever. */
const SHUTDOWN_TIMEOUT_MS = 30_000;

/** Creates the guard of a worker that is starting: it is busy until it calls `release`. */
export function createExitGuard(): ExitGuard {
  // A page that is not isolated from other origins has no shared memory; it can be closed at any
  // time.
  const guard = new Int32Array(
    typeof SharedArrayBuffer === "undefined" ? new ArrayBuffer(8) : new SharedArrayBuffer(8),
  );
  guard[BUSY] = 1;
  return guard;
}

/** Lets the process exit: the worker has loaded its modules, finished a request or failed. */
export function release(guard: ExitGuard): void {
  Atomics.store(guard, BUSY, 0);
  Atomics.notify(guard, BUSY);
}

/** Runs a task in the worker. When the process is exiting, neither runs it nor settles. */
export async function runGuarded<Result>(guard: ExitGuard, task: () => Promise<Result>): Promise<Result> {
  Atomics.store(guard, BUSY, 1);
  const isExiting = Atomics.load(guard, EXITING) === 1;
  try {
    if (!isExiting) return await task();
  } finally {
    release(guard);
  }
  return new Promise<never>(() => {});
}

/**
 * Makes the process wait for the worker's start or current request on exit; returns a function that
 * removes the handler.
 */
export function waitAtExit(guard: ExitGuard): () => void {
  return system.onExit(() => {
    Atomics.store(guard, EXITING, 1);
    Atomics.wait(guard, BUSY, 1, SHUTDOWN_TIMEOUT_MS);
  });
}
