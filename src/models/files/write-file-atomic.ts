import { randomUUID } from "node:crypto";
import { mkdir, open, rename, rm, type FileHandle } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { toWriteError } from "./file-errors.js";

/**
 * Writes a file so that `path` holds either the old content or the whole new one, never a part: `write` fills a
 * temporary file beside it, which is flushed to the disk and then renamed. The folder is made if it is missing.
 * Throws FILE_WRITE_FAILED.
 */
export async function replaceFileAtomic(path: string, write: (file: FileHandle) => Promise<void>): Promise<void> {
  const temporary = join(dirname(path), `.${basename(path)}.${randomUUID().slice(0, 8)}.partial`);
  try {
    await mkdir(dirname(path), { recursive: true });
    const file = await open(temporary, "wx");
    try {
      await write(file);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => undefined);
    throw toWriteError(path, error);
  }
}

/** Writes all of `data` as the file `path`, or leaves it as it was. Throws FILE_WRITE_FAILED. */
export async function writeFileAtomic(path: string, data: string | Uint8Array): Promise<void> {
  await replaceFileAtomic(path, async (file) => file.writeFile(data));
}
