import { fs, system } from "#platform";
import { LlamaGymError } from "../errors.js";
import { FileLock, STALE_AFTER_MS, type LockOwner } from "./file-lock.js";
import { hasProcessEnded } from "./process-identity.js";

/** Name of the lock file in a folder that a process writes to. */
export const LOCK_FILE = ".lock";

/** The right to write to a folder, which one process has at a time. */
export class FolderLock {
  private constructor(
    readonly folder: string,
    private readonly lock: FileLock,
    /**
     * Folders that the lock created, the innermost first: they are removed with it if nothing was
     * written.
     */
    private readonly created: readonly string[],
  ) {}

  /**
   * Makes this process the only one that writes to a folder, until `release` or its end. Creates
   * the folder.
   * @throws FOLDER_IN_USE while another process or run holds it, FILE_WRITE_FAILED.
   */
  static async acquire(folder: string, lockFile = fs.join(folder, LOCK_FILE)): Promise<FolderLock> {
    const created = await listMissingFolders(fs.resolve(fs.dirname(lockFile)));
    const lock = await FileLock.tryAcquire(lockFile);
    if (lock instanceof FileLock) return new FolderLock(folder, lock, created);
    throw new LlamaGymError("FOLDER_IN_USE", describeHolder(folder, lockFile, lock));
  }

  /** Aborts soon after the folder was deleted, moved or replaced. */
  get lost(): AbortSignal {
    return this.lock.lost;
  }

  /**
   * Checks that the folder is still the one that was locked. @throws FILE_WRITE_FAILED if it was
   * deleted, moved or replaced.
   */
  async verify(): Promise<void> {
    const { folder } = this;
    if (await this.lock.isHeld()) return;
    const problem = (await fs.exists(folder))
      ? `its lock file ${this.lock.path} was deleted or replaced`
      : "it is missing";
    throw new LlamaGymError(
      "FILE_WRITE_FAILED",
      `${folder} was deleted, moved or replaced while this process was writing to it: ${problem}. Nothing more is written. ` +
        "If it was moved, resume the run where it is now.",
    );
  }

  async release(): Promise<void> {
    if (!(await this.lock.release())) return;
    for (const folder of this.created) {
      const isRemoved = await fs.removeEmptyFolder(folder).then(
        () => true,
        () => false,
      );
      if (!isRemoved) return;
    }
  }
}

async function listMissingFolders(path: string): Promise<string[]> {
  if ((await fs.exists(path)) || fs.dirname(path) === path) return [];
  return [path, ...(await listMissingFolders(fs.dirname(path)))];
}

function describeHolder(folder: string, lockFile: string, owner: LockOwner | undefined): string {
  const takeover = `A lock without a sign of life for ${STALE_AFTER_MS / 1000} s is taken over.`;
  if (owner === undefined) return `${folder} is in use: ${lockFile} is unreadable. ${takeover}`;
  const { pid, host, since } = owner;
  if (hasProcessEnded(owner) === false && pid === system.pid)
    return `${folder} is in use by this process since ${since}. Close that run first, or choose another folder.`;
  const advice =
    hasProcessEnded(owner) === undefined
      ? `Stop it there, or choose another folder. ${takeover}`
      : "Wait for it or stop it, or choose another folder.";
  return `${folder} is in use by process ${pid} on ${host} since ${since}. ${advice}`;
}

/**
 * Does some work while this process is the only one that writes to a folder. @throws as
 * `FolderLock.acquire`.
 */
export async function withFolderLock<Result>(
  folder: string | undefined,
  work: (lock: FolderLock | undefined) => Promise<Result>,
): Promise<Result> {
  if (folder === undefined) return work(undefined);
  const lock = await FolderLock.acquire(folder);
  try {
    return await work(lock);
  } finally {
    await lock.release();
  }
}
