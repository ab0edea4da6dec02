import { fs, system } from "#platform";
import { encodeUtf8 } from "../../../core/bytes.js";
import { sleep } from "../../../core/sleep.js";
import { getSystemErrorCode, toWriteError } from "../file-errors.js";

const HEARTBEAT_INTERVAL_MS = 2000;
const MIN_POLL_MS = 20;
const MAX_POLL_MS = 250;
/** Age without a heartbeat at which a lock counts as stale, whatever process has its owner's id. */
const STALE_AFTER_MS = 60_000;

/**
 * Runs `work` unless its result exists, while no other process holds the lock file, so that a file is downloaded once. Locking
 * only saves work: downloads use positional writes and verify the result. Locks of dead processes are taken over.
 * @throws FILE_WRITE_FAILED and what `work` throws.
 */
export async function withLock(path: string, isDone: () => Promise<boolean>, work: () => Promise<void>): Promise<void> {
  for (let poll = MIN_POLL_MS; !(await isDone()); poll = Math.min(2 * poll, MAX_POLL_MS)) {
    if (await tryAcquire(path)) {
      await withHeartbeat(path, async () => {
        if (!(await isDone())) await work();
      });
    } else if (await isStale(path)) {
      await fs.remove(path).catch(() => undefined);
    } else {
      await sleep(poll);
    }
  }
}

async function withHeartbeat(path: string, work: () => Promise<void>): Promise<void> {
  const heartbeat = setInterval(() => {
    fs.touch(path).catch(() => undefined);
  }, HEARTBEAT_INTERVAL_MS);
  try {
    await work();
  } finally {
    clearInterval(heartbeat);
    await fs.remove(path).catch(() => undefined);
  }
}

async function tryAcquire(path: string): Promise<boolean> {
  try {
    await fs.makeFolder(fs.dirname(path));
    const file = await fs.open(path, "create");
    await file.write(encodeUtf8(`${system.pid} ${system.hostname}`)).finally(() => file.close());
    return true;
  } catch (error) {
    if (getSystemErrorCode(error) === "EEXIST") return false;
    throw toWriteError(path, error);
  }
}

async function isStale(path: string): Promise<boolean> {
  try {
    const [owner, status] = await Promise.all([fs.readText(path), fs.stat(path)]);
    const age = Date.now() - status.modifiedMs;
    const [pid, host] = owner.split(" ");
    return age > STALE_AFTER_MS || (host === system.hostname && !system.isProcessRunning(Number(pid)));
  } catch {
    return false;
  }
}
