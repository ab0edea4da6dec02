import { mkdir, readdir, readFile, rename, stat, unlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { getTemporaryPath } from "../../core/files/temporary-path.js";
import type { WorkerInfo } from "./job-queue.js";

/** Interval at which the directory is read. */
export const POLL_MS = 50;
/** In place of a worker's name: the job failed on several workers. */
export const LOST = "!lost";

/** Paths of a run in a shared directory. */
export const runPaths = (folder: string, run: string) => {
  const root = join(folder, "runs", run);
  return {
    root,
    setup: join(root, "setup.json"),
    lease: join(root, "lease"),
    weights: join(root, "weights"),
    /** Files ID.LOSSES */
    jobs: join(root, "jobs"),
    /** Files ID.LOSSES~WORKER */
    claims: join(root, "claims"),
    /** Files ID~WORKER */
    answers: join(root, "answers"),
    refused: join(root, "refused"),
  };
};

export const workersPath = (folder: string): string => join(folder, "workers");

/** Returns undefined for a file that does not exist. */
async function ifExists<Result>(operation: Promise<Result>): Promise<Result | undefined> {
  try {
    return await operation;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

/** Lists a folder without unfinished files; empty if it does not exist. */
export async function listFolder(folder: string): Promise<string[]> {
  return ((await ifExists(readdir(folder))) ?? []).filter((name) => !name.endsWith(".partial")).toSorted();
}

/** Writes a file under a temporary name and renames it, so that readers never see a part. */
export async function writeWhole(path: string, data: string | Uint8Array): Promise<void> {
  const partial = getTemporaryPath(path);
  await mkdir(dirname(path), { recursive: true });
  await writeFile(partial, data);
  await rename(partial, path);
}

/** Bytes of a message in a file, which is compressed. */
const MAX_FILE_BYTES = 256 * 2 ** 20;

/** Reads a file, or nothing of one that no reader of messages accepts. */
export async function readIfExists(path: string, maxBytes = MAX_FILE_BYTES): Promise<Uint8Array | undefined> {
  return ifExists(stat(path).then(async ({ size }) => (size > maxBytes ? new Uint8Array() : readFile(path))));
}

export const removeIfExists = async (path: string): Promise<void> => ifExists(unlink(path));
/** Moves a file; false if another process was faster. */
export const moveIfExists = async (from: string, to: string): Promise<boolean> =>
  (await ifExists(rename(from, to).then(() => true))) ?? false;

/**
 * Finds out by this machine's clock alone whether files are still touched, because the clocks of
 * machines differ.
 */
export class FileObserver {
  private readonly seen = new Map<string, { readonly modified: number; readonly since: number }>();

  constructor(private readonly leaseMs: number) {}

  /** Whether the file exists and has changed within the lease, as far as it was observed. */
  async isAlive(path: string): Promise<boolean> {
    const modified = (await ifExists(stat(path)))?.mtimeMs;
    if (modified === undefined) return false;
    const before = this.seen.get(path);
    if (before?.modified !== modified) this.seen.set(path, { modified, since: performance.now() });
    return before?.modified !== modified || performance.now() - before.since < this.leaseMs;
  }
}

/** Trained values of a run as files, by their hash. */
export class WeightsFolder {
  private readonly folder: string;

  constructor(folder: string, run: string) {
    this.folder = runPaths(folder, run).weights;
  }

  async put(sha256: string, values: Uint8Array): Promise<void> {
    await writeWhole(join(this.folder, sha256), values);
  }

  async get(sha256: string): Promise<Uint8Array | undefined> {
    return readIfExists(join(this.folder, sha256), Infinity);
  }

  async remove(sha256: string): Promise<void> {
    await removeIfExists(join(this.folder, sha256));
  }
}

/** Splits ID.LOSSES~WORKER, where LOSSES or WORKER may be missing. */
export function parseName(name: string): {
  readonly id: string;
  readonly losses: number;
  readonly worker: string | undefined;
} {
  const [job, worker] = name.split("~") as [string, string | undefined];
  const [id, losses = "0"] = job.split(".");
  return { id, losses: Number(losses), worker };
}

export async function listDirectoryWorkers(folder: string, observer: FileObserver): Promise<readonly WorkerInfo[]> {
  const workers: WorkerInfo[] = [];
  for (const name of await listFolder(workersPath(folder))) {
    const path = join(workersPath(folder), name);
    const text = (await observer.isAlive(path)) ? await readIfExists(path) : undefined;
    if (text !== undefined) workers.push(JSON.parse(text.toString()) as WorkerInfo);
  }
  return workers;
}
