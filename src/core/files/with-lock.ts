import { sleep } from "../sleep.js";
import { FileLock } from "./file-lock.js";

const MIN_POLL_MS = 20;
const MAX_POLL_MS = 250;

/**
 * Runs `work` unless its result exists, while no other process holds the lock file, so that a file
 * is written once. Locking only saves work: of two processes that write, each must leave a complete
 * file. Locks of dead processes are taken over.
 * @throws FILE_WRITE_FAILED and what `work` throws.
 */
export async function withLock(path: string, isDone: () => Promise<boolean>, work: () => Promise<void>): Promise<void> {
  for (let poll = MIN_POLL_MS; !(await isDone()); poll = Math.min(2 * poll, MAX_POLL_MS)) {
    const lock = await FileLock.tryAcquire(path);
    if (!(lock instanceof FileLock)) {
      await sleep(poll);
      continue;
    }
    try {
      if (!(await isDone())) await work();
    } finally {
      await lock.release();
    }
  }
}
