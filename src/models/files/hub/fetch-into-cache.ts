import { createHash, type Hash } from "node:crypto";
import { constants } from "node:fs";
import { mkdir, open, rename, rm, stat, statfs, type FileHandle } from "node:fs/promises";
import { dirname } from "node:path";
import { LlamaGymError } from "../../../core/errors.js";
import { toWriteError } from "../file-errors.js";
import type { ModelCache } from "./model-cache.js";
import { withLock } from "./with-lock.js";
import type { RemoteFile } from "./repository.js";
import { hubFetch, TransientError, withRetries, unreachableError, type RequestTarget } from "./hub-fetch.js";
import type { HubConfig } from "./hub-config.js";

/** Progress of a file's download. */
export interface DownloadProgress {
  /** Path in the repository. */
  readonly file: string;
  readonly loadedBytes: number;
  readonly totalBytes: number;
}

export interface DownloadContext {
  readonly config: HubConfig;
  readonly cache: ModelCache;
  readonly id: string;
  readonly commit: string;
  readonly onProgress?: (progress: DownloadProgress) => void;
}

const MAX_DOWNLOAD_RETRIES = 5;
const PROGRESS_INTERVAL_MS = 100;

/**
 * Adds a repository's file to its snapshot in the cache: downloads the blob if missing, resuming an
 * interrupted download, verifies its size and hash, and links it.
 * @throws HUB_NOT_FOUND, HUB_UNAUTHORIZED, HUB_UNREACHABLE, FILE_WRITE_FAILED, FILE_CORRUPT when
 * the content differs from what the hub announced.
 */
export async function fetchIntoCache(context: DownloadContext, file: RemoteFile): Promise<void> {
  const { cache, commit } = context;
  if (await cache.hasFile(commit, file.path)) return;
  const blob = cache.blobPath(file.hash);
  const isDone = async (): Promise<boolean> => hasSize(blob, file.size);
  await withLock(cache.lockPath(file.hash), isDone, async () => fetchBlob(context, file, blob));
  await cache.link(commit, file.path, file.hash);
}

async function hasSize(path: string, size: number): Promise<boolean> {
  return stat(path).then(
    (status) => status.size === size,
    () => false,
  );
}

async function fetchBlob(context: DownloadContext, file: RemoteFile, blob: string): Promise<void> {
  const partial = `${blob}.incomplete`;
  try {
    await mkdir(dirname(blob), { recursive: true });
    const handle = await open(partial, constants.O_RDWR | constants.O_CREAT);
    try {
      await checkSpace(dirname(blob), file.size - (await handle.stat()).size);
      await new Download(context, file, handle).run();
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(partial, blob);
  } catch (error) {
    if (error instanceof LlamaGymError && error.code === "FILE_CORRUPT") await rm(partial, { force: true });
    throw toWriteError(blob, error);
  }
}

/** @throws FILE_WRITE_FAILED when the disk lacks the space. */
async function checkSpace(folder: string, bytes: number): Promise<void> {
  const free = await statfs(folder).then(
    ({ bavail, bsize }) => bavail * bsize,
    () => Infinity,
  );
  if (bytes <= free) return;
  throw new LlamaGymError(
    "FILE_WRITE_FAILED",
    `${folder} has ${free} bytes free, but ${bytes} are needed. Free some space, or choose another folder with HF_HUB_CACHE.`,
  );
}

/** Blobs are named by their SHA-256, or by git's SHA-1 for files that git stores itself. */
function createBlobHash({ hash, size }: RemoteFile): Hash {
  return hash.length === 64 ? createHash("sha256") : createHash("sha1").update(`blob ${size}\0`);
}

/** Download of one file with its running hash. */
class Download {
  private loaded = 0;
  private hash: Hash;
  private lastReport = 0;
  private readonly target: RequestTarget;

  constructor(
    private readonly context: DownloadContext,
    private readonly file: RemoteFile,
    private readonly handle: FileHandle,
  ) {
    this.hash = createBlobHash(file);
    this.target = { id: context.id, revision: context.commit, file: file.path };
  }

  async run(): Promise<void> {
    const { config } = this.context;
    await this.resumePartial();
    if (!(await this.fetchRemaining())) {
      // The partial file was not a prefix of this file.
      await this.restart();
      await this.fetchRemaining();
    }
    if (this.hash.digest("hex") === this.file.hash) return;
    throw new LlamaGymError(
      "FILE_CORRUPT",
      `${this.file.path} of ${this.context.id} does not have the hash that ${config.endpoint} announced. Try again.`,
    );
  }

  /** Downloads the rest; returns false if a resumed download has the wrong hash. */
  private async fetchRemaining(): Promise<boolean> {
    const { config } = this.context;
    const wasResumed = this.loaded > 0;
    this.report(true);
    await withRetries(config, this.target, MAX_DOWNLOAD_RETRIES, async (resetRetries) => {
      while (this.loaded < this.file.size) await this.receive(resetRetries);
    });
    this.report(true);
    return !wasResumed || this.hash.copy().digest("hex") === this.file.hash;
  }

  /** Resumes an interrupted download by hashing the partial file. */
  private async resumePartial(): Promise<void> {
    const { size } = await this.handle.stat();
    if (size > this.file.size) return this.restart();
    const chunk = new Uint8Array(2 ** 20);
    while (this.loaded < size) {
      const { bytesRead } = await this.handle.read(chunk, 0, chunk.length, this.loaded);
      if (bytesRead === 0) break;
      this.hash.update(chunk.subarray(0, bytesRead));
      this.loaded += bytesRead;
    }
  }

  private async restart(): Promise<void> {
    this.loaded = 0;
    this.hash = createBlobHash(this.file);
    await this.handle.truncate(0);
  }

  /** Requests the missing range and writes the response until it ends. */
  private async receive(resetRetries: () => void): Promise<void> {
    const { config, id, commit } = this.context;
    const path = this.file.path.split("/").map(encodeURIComponent).join("/");
    const stallController = new AbortController();
    const response = await hubFetch(config, this.target, `${config.endpoint}/${id}/resolve/${commit}/${path}`, {
      headers: { "Accept-Encoding": "identity", ...(this.loaded > 0 ? { Range: `bytes=${this.loaded}-` } : {}) },
      signal: stallController.signal,
    });
    const start = getRangeStart(response);
    if (start !== this.loaded) {
      // The range was ignored, so the response is the whole file.
      if (start !== 0) throw new TransientError("the hub sent another range than requested");
      await this.restart();
    }
    const before = this.loaded;
    await this.writeBody(response, stallController, resetRetries);
    if (this.loaded > this.file.size) throw unreachableError(config, this.target, "received more bytes than announced");
    if (this.loaded === before) throw new TransientError("the connection ended without any data");
  }

  private async writeBody(
    response: Response,
    stallController: AbortController,
    resetRetries: () => void,
  ): Promise<void> {
    const { stallTimeoutMs } = this.context.config;
    let timer = setTimeout(() => stallController.abort(), stallTimeoutMs);
    try {
      for await (const chunk of readChunks(response, stallController, stallTimeoutMs)) {
        clearTimeout(timer);
        await this.write(chunk);
        resetRetries();
        this.report(false);
        timer = setTimeout(() => stallController.abort(), stallTimeoutMs);
      }
    } finally {
      clearTimeout(timer);
    }
  }

  private async write(chunk: Uint8Array): Promise<void> {
    let written = 0;
    while (written < chunk.length) {
      // Positional writes keep a concurrent download of the same file harmless.
      const position = this.loaded + written;
      written += (await this.handle.write(chunk, written, chunk.length - written, position)).bytesWritten;
    }
    this.hash.update(chunk);
    this.loaded += chunk.length;
  }

  private report(force: boolean): void {
    const now = performance.now();
    if (!force && now - this.lastReport < PROGRESS_INTERVAL_MS) return;
    this.lastReport = now;
    const { onProgress } = this.context;
    onProgress?.({ file: this.file.path, loadedBytes: this.loaded, totalBytes: this.file.size });
  }
}

/** Returns the file offset of a response's body. */
function getRangeStart(response: Response): number {
  if (response.status !== 206) return 0;
  const range = /^bytes (\d+)-/u.exec(response.headers.get("content-range") ?? "");
  return range === null ? -1 : Number(range[1]);
}

/** Yields the body's chunks; a broken or stalled connection is a transient error. */
async function* readChunks(
  response: Response,
  stallController: AbortController,
  timeout: number,
): AsyncGenerator<Uint8Array> {
  if (response.body === null) return;
  const reader: ReadableStreamDefaultReader<Uint8Array> = response.body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read().catch((error: unknown) => {
        const reason = stallController.signal.aborted
          ? `no data for ${timeout / 1000} s`
          : "the connection was interrupted";
        throw new TransientError(reason, { cause: error });
      });
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
