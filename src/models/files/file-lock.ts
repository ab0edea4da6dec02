import { fs, system } from "#platform";
import { z } from "zod";
import { encodeUtf8 } from "../../core/bytes.js";
import { getSystemErrorCode, toWriteError } from "./file-errors.js";
import { getProcessIdentity, hasProcessEnded } from "./process-identity.js";
import { getTemporaryPath, removeAbandonedFiles } from "./temporary-path.js";

const ownerSchema = z.object({
  token: z.string().regex(/^[\da-f-]{36}$/),
  pid: z.int(),
  host: z.string(),
  bootId: z.string(),
  processStart: z.string(),
  /** When the lock was taken, in ISO format. */
  since: z.string(),
});

/** The content of a lock file. */
export type LockOwner = z.infer<typeof ownerSchema>;

/** Name in claims of a lock whose content is unreadable. */
const UNREADABLE = "unreadable";

const MAX_ATTEMPTS = 10;

interface FileLockOptions {
  /** Age without `touch` at which a lock counts as stale on every host. Default: none. */
  readonly staleAfterMs?: number;
}

/**
 * A lock file that names the process that holds it. The lock of a process that has ended is taken over; of several processes that
 * find it, one succeeds.
 */
export class FileLock {
  private readonly removeExitHandler: () => void;

  private constructor(
    readonly path: string,
    private readonly token: string,
  ) {
    this.removeExitHandler = system.onExit(() => {
      if (this.isHeldSync()) fs.removeSync(path);
    });
  }

  /** Takes a lock; returns its owner if it is held, undefined for one whose content is unreadable. @throws FILE_WRITE_FAILED */
  static async tryAcquire(path: string, options: FileLockOptions = {}): Promise<FileLock | LockOwner | undefined> {
    const owner = { token: crypto.randomUUID(), ...getProcessIdentity(), since: new Date().toISOString() };
    for (let attempt = 1; ; attempt++)
      try {
        await fs.makeFolder(fs.dirname(path));
        await removeAbandonedFiles(fs.dirname(path), path);
        const outcome = await acquire(path, owner, options);
        return outcome === "acquired" ? new FileLock(path, owner.token) : outcome;
      } catch (error) {
        // Another process may just have removed the folder, which its lock had created.
        if (getSystemErrorCode(error) !== "ENOENT" || attempt === MAX_ATTEMPTS) throw toWriteError(path, error);
      }
  }

  /** Whether the lock file is still the one that was taken. */
  async isHeld(): Promise<boolean> {
    return (await readOwner(this.path))?.token === this.token;
  }

  /** Shows that the owner is alive. */
  async touch(): Promise<void> {
    await fs.touch(this.path).catch(() => undefined);
  }

  /** Gives the lock up. Returns false if the lock file was deleted or replaced. */
  async release(): Promise<boolean> {
    this.removeExitHandler();
    if (!(await this.isHeld())) return false;
    await fs.remove(this.path).catch(() => undefined);
    return true;
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
 * Creates the lock file, or replaces a stale one. Replacing needs the claim on that very lock, a lock file itself, and a second
 * look once the claim is held: a process that was slower then finds another owner. The claim becomes the lock by its new name.
 */
async function acquire(
  path: string,
  owner: LockOwner,
  options: FileLockOptions,
): Promise<"acquired" | LockOwner | undefined> {
  for (;;) {
    if (await createWithContent(path, JSON.stringify(owner))) return "acquired";
    const current = await readOwner(path);
    if (!(await isStale(path, current, options))) {
      if (await fs.exists(path)) return current;
      continue;
    }
    const claim = `${path}.${current?.token ?? UNREADABLE}`;
    const claimed = await acquire(claim, owner, options);
    if (claimed !== "acquired") return claimed;
    const latest = await readOwner(path);
    if (latest?.token === current?.token && (await isStale(path, latest, options))) {
      await fs.rename(claim, path);
      return "acquired";
    }
    await fs.remove(claim);
  }
}

/** Creates a file that has its content from the beginning. Returns false if it exists. */
async function createWithContent(path: string, content: string): Promise<boolean> {
  const temporary = getTemporaryPath(path);
  await writeNew(temporary, content);
  try {
    await fs.link(temporary, path);
    return true;
  } catch (error) {
    const code = getSystemErrorCode(error);
    if (code === "EEXIST") return false;
    if (!["EPERM", "ENOSYS", "ENOTSUP", "EOPNOTSUPP", "EMLINK"].includes(code ?? "")) throw error;
  } finally {
    await fs.remove(temporary);
  }
  // Without hard links (FAT), another process may read the file before it has its content, and then considers it as held.
  try {
    await writeNew(path, content);
    return true;
  } catch (error) {
    if (getSystemErrorCode(error) === "EEXIST") return false;
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

async function isStale(
  path: string,
  owner: LockOwner | undefined,
  { staleAfterMs = Infinity }: FileLockOptions,
): Promise<boolean> {
  if (owner !== undefined && hasProcessEnded(owner)) return true;
  const status = await fs.stat(path).catch(() => undefined);
  return status !== undefined && Date.now() - status.modifiedMs > staleAfterMs;
}
