import { createHash, fs } from "#platform";
import type { OpenFile, RunningHash } from "../../../core/platform/ports.js";
import { LlamaGymError } from "../../../core/errors.js";
import { toWriteError } from "../../../core/files/file-errors.js";
import type { ModelCache } from "./model-cache.js";
import { withLock } from "../../../core/files/with-lock.js";
import type { RemoteFile } from "./repository.js";
import {
  getContentType,
  hubFetch,
  readChunks,
  TransientError,
  unreachableError,
  withRetries,
  type RequestTarget,
} from "./hub-fetch.js";
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

/** Consecutive attempts that may fail without progress after the first. */
const MAX_DOWNLOAD_RETRIES = 5;
/**
 * New bytes that count as progress, also as a share of the file: bounds the requests for a file of
 * any size.
 */
const MIN_PROGRESS_BYTES = 2 ** 20;
const MIN_PROGRESS_SHARE = 0.001;
const PROGRESS_INTERVAL_MS = 100;

/**
 * Adds a repository's file to its snapshot in the cache: downloads the blob if missing, resuming an
 * interrupted download, verifies its size and hash, and links it. @throws HUB_NOT_FOUND,
 * HUB_UNAUTHORIZED, HUB_UNREACHABLE, FILE_WRITE_FAILED, FILE_CORRUPT when the content does not have
 * the announced hash.
 */
export async function fetchIntoCache(context: DownloadContext, file: RemoteFile): Promise<void> {
  const { cache, commit } = context;
  if (await cache.hasFile(commit, file.path)) return;
  const blob = cache.blobPath(file.hash);
  const isDone = async (): Promise<boolean> => (await fs.stat(blob).catch(() => undefined))?.size === file.size;
  if (!(await isDone()))
    await withLock(cache.lockPath(file.hash), async () => {
      if (!(await isDone())) await fetchBlob(context, file, blob);
    });
  await cache.link(commit, file.path, file.hash);
}

async function fetchBlob(context: DownloadContext, file: RemoteFile, blob: string): Promise<void> {
  const partial = `${blob}.incomplete`;
  try {
    await fs.makeFolder(fs.dirname(blob));
    const handle = await fs.open(partial, "update");
    try {
      await checkSpace(fs.dirname(blob), file.size - (await handle.size()));
      await new Download(context, file, handle).run();
      await handle.sync();
    } finally {
      await handle.close();
    }
    await fs.rename(partial, blob);
  } catch (error) {
    if (error instanceof LlamaGymError && error.code === "FILE_CORRUPT") await fs.remove(partial);
    throw toWriteError(blob, error);
  }
}

/** @throws FILE_WRITE_FAILED when the disk lacks the space. */
async function checkSpace(folder: string, bytes: number): Promise<void> {
  const free = await fs.freeBytes(folder).catch(() => Infinity);
  if (bytes <= free) return;
  throw new LlamaGymError(
    "FILE_WRITE_FAILED",
    `${folder} has ${free} bytes free, but ${bytes} are needed. Free some space, or choose another folder with HF_HUB_CACHE.`,
  );
}

/** Blobs are named by their SHA-256, or by git's SHA-1 for files that git stores itself. */
function createBlobHash({ hash, size }: RemoteFile): RunningHash {
  return hash.length === 64 ? createHash("sha256") : createHash("sha1").update(`blob ${size}\0`);
}

/** Download of one file with its running hash. */
class Download {
  private loaded = 0;
  private hash: RunningHash;
  private contentType = "";
  private lastReport = 0;
  private readonly target: RequestTarget;

  constructor(
    private readonly context: DownloadContext,
    private readonly file: RemoteFile,
    private readonly handle: OpenFile,
  ) {
    this.hash = createBlobHash(file);
    this.target = { id: context.id, revision: context.commit, file: file.path };
  }

  async run(): Promise<void> {
    await this.hashPartial();
    const wasResumed = this.loaded > 0;
    let digest = await this.fetchRemaining();
    if (wasResumed && digest !== this.file.hash) {
      // The partial file was not a prefix of this file.
      await this.restart();
      digest = await this.fetchRemaining();
    }
    if (digest === this.file.hash) return;
    throw new LlamaGymError(
      "FILE_CORRUPT",
      `${this.file.path} of ${this.context.id} does not have the hash that ${this.context.config.endpoint} announced: ` +
        `expected ${this.file.hash}, got ${digest} (${this.contentType}). Try again, or check HF_ENDPOINT.`,
    );
  }

  /** Hashes the partial file of an interrupted download, which is then resumed. */
  private async hashPartial(): Promise<void> {
    const size = await this.handle.size();
    if (size > this.file.size) return this.restart();
    const chunk = new Uint8Array(2 ** 20);
    while (this.loaded < size) {
      const bytesRead = await this.handle.read(chunk, this.loaded);
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

  /** Downloads the rest and returns the file's hash. */
  private async fetchRemaining(): Promise<string> {
    const { size } = this.file;
    const minProgress = Math.max(MIN_PROGRESS_BYTES, MIN_PROGRESS_SHARE * size);
    // Not reset by a restart: a server that ignores ranges sends the same bytes again and again.
    let milestone = this.loaded + minProgress;
    this.report(true);
    await withRetries(this.context.config, this.target, MAX_DOWNLOAD_RETRIES, async (resetRetries) => {
      if (this.loaded === size) return;
      await this.receive(() => {
        if (this.loaded < milestone) return;
        milestone = this.loaded + minProgress;
        resetRetries();
      });
    });
    this.report(true);
    return this.hash.copy().hex();
  }

  /**
   * Requests the missing bytes and writes them. @throws TransientError when some are still missing.
   */
  private async receive(onChunk: () => void): Promise<void> {
    const { config, id, commit } = this.context;
    const { size } = this.file;
    const path = this.file.path.split("/").map(encodeURIComponent).join("/");
    const response = await hubFetch(config, this.target, `${config.endpoint}/${id}/resolve/${commit}/${path}`, {
      headers: { "Accept-Encoding": "identity", ...(this.loaded > 0 ? { Range: `bytes=${this.loaded}-` } : {}) },
    });
    this.contentType = getContentType(response);
    try {
      await this.prepareForResponse(response);
    } catch (error) {
      response.body?.cancel().catch(() => undefined);
      throw error;
    }
    for await (const chunk of readChunks(response, config.stallTimeoutMs)) {
      if (this.loaded + chunk.length > size) throw this.sizeError("more bytes");
      await this.write(chunk);
      onChunk();
      this.report(false);
    }
    if (this.loaded < size)
      throw new TransientError(`the response (${this.contentType}) ended after ${this.loaded} of ${size} bytes`);
  }

  /**
   * Starts over if the range was ignored; rejects a length that does not complete the file, such as
   * an error page's.
   */
  private async prepareForResponse(response: Response): Promise<void> {
    const start = getRangeStart(response);
    if (start !== 0 && start !== this.loaded) throw new TransientError("the hub sent another range than requested");
    if (start !== this.loaded) await this.restart();
    const header = response.headers.get("content-length");
    if (header === null || response.headers.has("content-encoding")) return;
    const end = this.loaded + Number(header);
    // A partial response may be shorter than requested.
    if (response.status === 206 ? end > this.file.size : end !== this.file.size) throw this.sizeError(`${end} bytes`);
  }

  private sizeError(found: string): LlamaGymError {
    const reason = `it sent ${found} (${this.contentType}), but the announced size is ${this.file.size}`;
    return unreachableError(this.context.config, this.target, reason);
  }

  private async write(chunk: Uint8Array): Promise<void> {
    // Positional writes keep a concurrent download of the same file harmless.
    await this.handle.write(chunk, this.loaded);
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

/** Returns the file offset of a response's body; -1 for an invalid Content-Range. */
function getRangeStart(response: Response): number {
  if (response.status !== 206) return 0;
  const range = /^bytes (\d+)-/u.exec(response.headers.get("content-range") ?? "");
  return range === null ? -1 : Number(range[1]);
}
