import { mkdir, open, readFile, rm, stat, utimes } from "node:fs/promises";
import { hostname } from "node:os";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
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
      await rm(path, { force: true }).catch(() => undefined);
    } else {
      await sleep(poll);
    }
  }
}

async function withHeartbeat(path: string, work: () => Promise<void>): Promise<void> {
  const heartbeat = setInterval(() => {
    const now = new Date();
    utimes(path, now, now).catch(() => undefined);
  }, HEARTBEAT_INTERVAL_MS);
  heartbeat.unref();
  try {
    await work();
  } finally {
    clearInterval(heartbeat);
    await rm(path, { force: true }).catch(() => undefined);
  }
}

async function tryAcquire(path: string): Promise<boolean> {
  try {
    await mkdir(dirname(path), { recursive: true });
    const file = await open(path, "wx");
    await file.writeFile(`${process.pid} ${hostname()}`).finally(() => file.close());
    return true;
  } catch (error) {
    if (getSystemErrorCode(error) === "EEXIST") return false;
    throw toWriteError(path, error);
  }
}

async function isStale(path: string): Promise<boolean> {
  try {
    const [owner, status] = await Promise.all([readFile(path, "utf8"), stat(path)]);
    const age = Date.now() - status.mtimeMs;
    const [pid, host] = owner.split(" ");
    return age > STALE_AFTER_MS || (host === hostname() && !isAlive(Number(pid)));
  } catch {
    return false;
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return getSystemErrorCode(error) === "EPERM";
  }
}
