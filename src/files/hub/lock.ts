import { mkdir, open, readFile, rm, stat, utimes } from "node:fs/promises";
import { hostname } from "node:os";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { systemCode, writeFailure } from "../failure.js";

const HEARTBEAT = 2000;
const FIRST_POLL = 20;
const LONGEST_POLL = 250;
/** A lock whose owner cannot be asked (another machine) and that stands untouched for so long is taken over. */
const STALE_AFTER = 60_000;

/**
 * Runs `work` unless what it makes is there already, while no other process does the same under this lock file, so that
 * a file is fetched once. It is a courtesy, not a need: a download writes each byte at its place and checks the whole
 * before it counts. The lock of a process that is gone is taken over. Throws FILE_WRITE_FAILED, and what `work` throws.
 */
export async function onceUnderLock(
  path: string,
  isDone: () => Promise<boolean>,
  work: () => Promise<void>,
): Promise<void> {
  for (let poll = FIRST_POLL; !(await isDone()); poll = Math.min(2 * poll, LONGEST_POLL)) {
    if (await acquired(path)) {
      await heldWhile(path, async () => {
        if (!(await isDone())) await work();
      });
    } else if (await isAbandoned(path)) {
      await rm(path, { force: true }).catch(() => undefined);
    } else {
      await sleep(poll);
    }
  }
}

async function heldWhile(path: string, work: () => Promise<void>): Promise<void> {
  const heartbeat = setInterval(() => {
    const now = new Date();
    utimes(path, now, now).catch(() => undefined);
  }, HEARTBEAT);
  heartbeat.unref();
  try {
    await work();
  } finally {
    clearInterval(heartbeat);
    await rm(path, { force: true }).catch(() => undefined);
  }
}

async function acquired(path: string): Promise<boolean> {
  try {
    await mkdir(dirname(path), { recursive: true });
    const file = await open(path, "wx");
    await file.writeFile(`${process.pid} ${hostname()}`).finally(() => file.close());
    return true;
  } catch (error) {
    if (systemCode(error) === "EEXIST") return false;
    throw writeFailure(path, error);
  }
}

async function isAbandoned(path: string): Promise<boolean> {
  try {
    const [owner, status] = await Promise.all([readFile(path, "utf8"), stat(path)]);
    const age = Date.now() - status.mtimeMs;
    const [pid, host] = owner.split(" ");
    // An owner that has not yet written its name is just starting.
    if (host === undefined) return age > STALE_AFTER;
    return host === hostname() ? !isAlive(Number(pid)) : age > STALE_AFTER;
  } catch {
    return false;
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return systemCode(error) === "EPERM";
  }
}
