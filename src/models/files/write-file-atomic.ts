import { randomUUID } from "node:crypto";
import { mkdir, open, rename, rm, type FileHandle } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { toWriteError } from "./file-errors.js";

/**
 * Replaces a file atomically: `write` fills a temporary file beside it, which is flushed and
 * renamed. Creates the folder if missing. @throws FILE_WRITE_FAILED.
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

/** Writes a file atomically. @throws FILE_WRITE_FAILED. */
export async function writeFileAtomic(path: string, data: string | Uint8Array): Promise<void> {
  await replaceFileAtomic(path, async (file) => file.writeFile(data));
}
