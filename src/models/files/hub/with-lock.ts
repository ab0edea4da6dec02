import { sleep } from "../../../core/sleep.js";
import { FileLock } from "../file-lock.js";

const HEARTBEAT_INTERVAL_MS = 2000;
const MIN_POLL_MS = 20;
const MAX_POLL_MS = 250;
/** Age without a heartbeat at which a lock counts as stale, also one of another host. */
const STALE_AFTER_MS = 60_000;

/**
 * Runs `work` unless its result exists, while no other process holds the lock file, so that a file is downloaded once. Locking
 * only saves work: downloads use positional writes and verify the result. Locks of dead processes are taken over.
 * @throws FILE_WRITE_FAILED and what `work` throws.
 */
export async function withLock(path: string, isDone: () => Promise<boolean>, work: () => Promise<void>): Promise<void> {
  for (let poll = MIN_POLL_MS; !(await isDone()); poll = Math.min(2 * poll, MAX_POLL_MS)) {
    const lock = await FileLock.tryAcquire(path, { staleAfterMs: STALE_AFTER_MS });
    if (lock instanceof FileLock) {
      await withHeartbeat(lock, async () => {
        if (!(await isDone())) await work();
      });
    } else {
      await sleep(poll);
    }
  }
}

async function withHeartbeat(lock: FileLock, work: () => Promise<void>): Promise<void> {
  const heartbeat = setInterval(() => void lock.touch(), HEARTBEAT_INTERVAL_MS);
  try {
    await work();
  } finally {
    clearInterval(heartbeat);
    await lock.release();
  }
}
