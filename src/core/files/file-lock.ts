import { fs, system } from "#platform";
import { z } from "zod";
import { encodeUtf8 } from "../bytes.js";
import { getSystemErrorCode, ignoreMissingFile, toReadError, toWriteError } from "./file-errors.js";
import { getProcessIdentity, hasProcessEnded } from "./process-identity.js";
import { getTemporaryPath, removeAbandonedFiles } from "./temporary-path.js";

const ownerSchema = z.object({
  token: z.string().regex(/^[\da-f-]{36}$/),
  pid: z.int(),
  host: z.string(),
  pidNamespace: z.string(),
  processStart: z.string(),
  /** When the lock was taken, in ISO format. */
  since: z.string(),
});

/** The content of a lock file. */
export type LockOwner = z.infer<typeof ownerSchema>;

/** Name in claims of a lock whose content is unreadable. */
const UNREADABLE = "unreadable";

const MAX_ATTEMPTS = 10;

const HEARTBEAT_INTERVAL_MS = 2000;
/**
 * Age of the last heartbeat at which the lock of a process that cannot be seen from here counts as
 * stale.
 */
export const STALE_AFTER_MS = 60_000;

/**
 * A lock file that names the process that holds it. The lock of a process that has ended is taken
 * over, and that of a process of another host or container once it has had no heartbeat for a
 * minute; of several processes that find it, one succeeds.
 */
export class FileLock {
  private readonly removeExitHandler: () => void;
  private readonly heartbeat: ReturnType<typeof setInterval> & { readonly unref?: () => void };
  private readonly loss = new AbortController();

  private constructor(
    readonly path: string,
    private readonly token: string,
  ) {
    this.removeExitHandler = system.onExit(() => {
      if (this.isHeldSync()) fs.removeSync(path);
    });
    this.heartbeat = setInterval(() => void this.beat().catch(() => undefined), HEARTBEAT_INTERVAL_MS);
    this.heartbeat.unref?.();
  }

  /** Aborts once a heartbeat finds that the lock file was deleted or replaced. */
  get lost(): AbortSignal {
    return this.loss.signal;
  }

  /**
   * Takes a lock; returns its owner if it is held, undefined for one whose content is unreadable.
   * @throws FILE_WRITE_FAILED
   */
  static async tryAcquire(path: string): Promise<FileLock | LockOwner | undefined> {
    const owner = { token: crypto.randomUUID(), ...getProcessIdentity(), since: new Date().toISOString() };
    for (let attempt = 1; ; attempt++)
      try {
        await fs.makeFolder(fs.dirname(path));
        await removeAbandonedFiles(fs.dirname(path), path);
        const outcome = await acquire(path, owner);
        return outcome === "acquired" ? new FileLock(path, owner.token) : outcome;
      } catch (error) {
        // Another process may just have removed the folder, which its lock had created.
        if (getSystemErrorCode(error) !== "ENOENT" || attempt === MAX_ATTEMPTS) throw toWriteError(path, error);
      }
  }

  /** Whether the lock file is still the one that was taken. @throws FILE_READ_FAILED */
  async isHeld(): Promise<boolean> {
    const content = await fs
      .readText(this.path)
      .catch((error: unknown) => ignoreMissingFile(toReadError(this.path, error)));
    return content?.includes(this.token) === true;
  }

  /** Gives the lock up. Returns false if the lock file was deleted or replaced. */
  async release(): Promise<boolean> {
    this.removeExitHandler();
    clearInterval(this.heartbeat);
    if (!(await this.isHeld().catch(() => false))) return false;
    await fs.remove(this.path).catch(() => undefined);
    return true;
  }

  /** Shows that the owner is alive. */
  private async beat(): Promise<void> {
    if (await this.isHeld()) return fs.touch(this.path);
    clearInterval(this.heartbeat);
    this.loss.abort();
  }

  private isHeldSync(): boolean {
    try {
      return new TextDecoder().decode(fs.readBytesSync(this.path)).includes(this.token);
    } catch {
      return false;
    }
  }
}

/**
 * Creates the lock file, or replaces a stale one. Replacing needs the claim on that very lock, a
 * lock file itself, and a second look once the claim is held: a process that was slower then finds
 * another owner. The claim becomes the lock by its new name.
 */
async function acquire(path: string, owner: LockOwner): Promise<"acquired" | LockOwner | undefined> {
  for (;;) {
    const now = await createUnlessExists(path, JSON.stringify(owner));
    if (now === undefined) return "acquired";
    const current = await readOwner(path);
    if (!(await isStale(path, current, now))) {
      if (await fs.exists(path)) return current;
      continue;
    }
    const claim = `${path}.${current?.token ?? UNREADABLE}`;
    const claimed = await acquire(claim, owner);
    if (claimed !== "acquired") return claimed;
    const latest = await readOwner(path);
    if (latest?.token === current?.token && (await isStale(path, latest, now))) {
      await fs.rename(claim, path);
      return "acquired";
    }
    await fs.remove(claim);
  }
}

/**
 * Creates a file that has its content from the beginning. If it exists, returns the time by the
 * file system's clock.
 */
async function createUnlessExists(path: string, content: string): Promise<number | undefined> {
  const temporary = getTemporaryPath(path);
  await writeNew(temporary, content);
  const { modifiedMs: now } = await fs.stat(temporary);
  try {
    await fs.link(temporary, path);
    return undefined;
  } catch (error) {
    const code = getSystemErrorCode(error);
    if (code === "EEXIST") return now;
    if (!["EPERM", "ENOSYS", "ENOTSUP", "EOPNOTSUPP", "EMLINK"].includes(code ?? "")) throw error;
  } finally {
    await fs.remove(temporary);
  }
  // Without hard links (FAT), another process may read the file before it has its content, and then
  // considers it as held.
  try {
    await writeNew(path, content);
    return undefined;
  } catch (error) {
    if (getSystemErrorCode(error) === "EEXIST") return now;
    throw error;
  }
}

async function writeNew(path: string, content: string): Promise<void> {
  const file = await fs.open(path, "create");
  await file.write(encodeUtf8(content)).finally(() => file.close());
}

async function readOwner(path: string): Promise<LockOwner | undefined> {
  try {
    return ownerSchema.parse(JSON.parse(await fs.readText(path)));
  } catch {
    return undefined;
  }
}

async function isStale(path: string, owner: LockOwner | undefined, now: number): Promise<boolean> {
  const hasEnded = owner && hasProcessEnded(owner);
  if (hasEnded !== undefined) return hasEnded;
  const status = await fs.stat(path).catch(() => undefined);
  return status !== undefined && now - status.modifiedMs > STALE_AFTER_MS;
}
