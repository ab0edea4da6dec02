import { fs } from "#platform";
import { encodeUtf8 } from "../../core/bytes.js";
import type { OpenFile } from "../../core/platform/ports.js";
import { toWriteError } from "./file-errors.js";

/**
 * Replaces a file atomically: `write` fills a temporary file in the same folder, which is flushed and
 * renamed. Creates the folder if missing. @throws FILE_WRITE_FAILED.
 */
export async function replaceFileAtomic(path: string, write: (file: OpenFile) => Promise<void>): Promise<void> {
  const temporary = fs.join(fs.dirname(path), `.${fs.basename(path)}.${crypto.randomUUID().slice(0, 8)}.partial`);
  try {
    await fs.makeFolder(fs.dirname(path));
    const file = await fs.open(temporary, "create");
    try {
      await write(file);
      await file.sync();
    } finally {
      await file.close();
    }
    await fs.rename(temporary, path);
  } catch (error) {
    await fs.remove(temporary).catch(() => undefined);
    throw toWriteError(path, error);
  }
}

/**
 * Replaces a folder, which appears once `write` has filled a temporary folder next to it, whose name ends with
 * ".partial". @throws FILE_WRITE_FAILED, and what `write` throws.
 */
export async function replaceFolder(path: string, write: (folder: string) => Promise<void>): Promise<void> {
  const folder = fs.resolve(path);
  const temporary = `${folder}.${crypto.randomUUID().slice(0, 8)}.partial`;
  try {
    await fs.makeFolder(temporary);
    await write(temporary);
    await fs.remove(folder);
    await fs.rename(temporary, folder);
  } catch (error) {
    await fs.remove(temporary).catch(() => undefined);
    throw toWriteError(path, error);
  }
}

/** Writes a file atomically. @throws FILE_WRITE_FAILED. */
export async function writeFileAtomic(path: string, data: string | Uint8Array): Promise<void> {
  await replaceFileAtomic(path, (file) => file.write(typeof data === "string" ? encodeUtf8(data) : data));
}
