import { fs } from "#platform";
import { LlamaGymError } from "../../core/errors.js";
import type { OpenFile } from "../../core/platform/ports.js";
import { checkNoLfsPointer, corruptFileError, LFS_POINTER_BYTES, toReadError } from "../../core/files/file-errors.js";

/** Bytes per stream buffer, of which there are two; fits the L2 cache. */
const CHUNK_BYTES = 512 * 1024;

/** A file opened for random access. `size` is its size when opened. */
export class FileSource {
  private closed = false;

  private constructor(
    readonly path: string,
    readonly size: number,
    private readonly file: OpenFile,
  ) {}

  /** @throws FILE_NOT_FOUND, FILE_READ_FAILED, or FILE_CORRUPT for a pointer of Git LFS. */
  static async open(path: string): Promise<FileSource> {
    try {
      const { isFile, size } = await fs.stat(path);
      if (!isFile)
        throw new LlamaGymError("FILE_READ_FAILED", `${path} is not a file. Give the path of the file itself.`);
      if (size < LFS_POINTER_BYTES) checkNoLfsPointer(path, await fs.readBytes(path));
      return new FileSource(path, size, await fs.open(path, "read"));
    } catch (error) {
      throw toReadError(path, error);
    }
  }

  /**
   * Fills `target`, which may be shared memory, with the bytes from `offset` on. @throws
   * FILE_CORRUPT at the end of the file.
   */
  async read(target: Uint8Array, offset: number): Promise<void> {
    if (this.closed)
      throw new LlamaGymError("INVALID_STATE", `${this.path} is closed. Read its tensors before closing it.`);
    const bytesRead = await this.file.read(target, offset).catch((error: unknown) => {
      throw toReadError(this.path, error);
    });
    if (bytesRead === target.length) return;
    const fault = `it ends at byte ${offset + bytesRead}, but ${offset + target.length} were expected`;
    throw corruptFileError(this.path, fault);
  }

  /** Reads a range of bytes. */
  async bytes(offset: number, length: number): Promise<Uint8Array<ArrayBuffer>> {
    const result = new Uint8Array(length);
    await this.read(result, offset);
    return result;
  }

  /**
   * Passes a range to `onChunk` in chunks of whole units (blocks, rows), reading ahead by one
   * chunk. `onChunk` gets the bytes, which are overwritten later, and the number of preceding
   * units.
   */
  async stream(
    offset: number,
    byteLength: number,
    unitBytes: number,
    onChunk: (bytes: Uint8Array<ArrayBuffer>, unitsBefore: number) => void,
  ): Promise<void> {
    const chunkBytes = Math.min(byteLength, Math.max(unitBytes, CHUNK_BYTES - (CHUNK_BYTES % unitBytes)));
    if (byteLength === 0) return;
    let front: Uint8Array<ArrayBuffer> = new Uint8Array(chunkBytes);
    let back = byteLength > chunkBytes ? new Uint8Array(chunkBytes) : front;
    let start = 0;
    let chunk = front.subarray(0, Math.min(chunkBytes, byteLength));
    await this.read(chunk, offset);
    while (start < byteLength) {
      const nextStart = start + chunk.length;
      const nextChunk = back.subarray(0, Math.min(chunkBytes, byteLength - nextStart));
      const reading = nextChunk.length > 0 ? this.read(nextChunk, offset + nextStart) : undefined;
      try {
        onChunk(chunk, start / unitBytes);
      } finally {
        await reading;
      }
      [front, back] = [back, front];
      chunk = nextChunk;
      start = nextStart;
    }
  }

  async close(): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    await this.file.close();
  }
}
