import { sleep } from "../sleep.js";
import { FileLock } from "./file-lock.js";

const MIN_POLL_MS = 20;
const MAX_POLL_MS = 250;

/**
 * Runs `work` while no other process holds the lock file, for which it waits. Locks of dead
 * processes are taken over, and a process that stands still for a minute may lose its own: what
 * `work` writes must be complete whoever else writes it.
 * @throws FILE_WRITE_FAILED and what `work` throws.
 */
export async function withLock<Result>(path: string, work: () => Promise<Result>): Promise<Result> {
  for (let poll = MIN_POLL_MS; ; poll = Math.min(2 * poll, MAX_POLL_MS)) {
    const lock = await FileLock.tryAcquire(path);
    if (!(lock instanceof FileLock)) {
      await sleep(poll);
      continue;
    }
    try {
      return await work();
    } finally {
      await lock.release();
    }
  }
}
