import { fs } from "#platform";
import { encodeUtf8 } from "../bytes.js";
import type { OpenFile } from "../platform/ports.js";
import { toWriteError } from "./file-errors.js";
import { getTemporaryPath, removeAbandonedFiles } from "./temporary-path.js";

/**
 * Replaces a file atomically: `write` fills a temporary file in the same folder, which is flushed
 * and renamed. Creates the folder if missing. @throws FILE_WRITE_FAILED.
 */
export async function replaceFileAtomic(path: string, write: (file: OpenFile) => Promise<void>): Promise<void> {
  const temporary = getTemporaryPath(path);
  try {
    await fs.makeFolder(fs.dirname(path));
    await removeAbandonedOnce(path);
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
 * Replaces a folder, which appears once `write` has filled a temporary folder next to it, whose
 * name ends with ".partial". What killed processes left under such names is removed. @throws
 * FILE_WRITE_FAILED, and what `write` throws.
 */
export async function replaceFolder(path: string, write: (folder: string) => Promise<void>): Promise<void> {
  const folder = fs.resolve(path);
  const temporary = getTemporaryPath(folder);
  try {
    await removeAbandonedOnce(folder);
    await fs.makeFolder(temporary);
    await write(temporary);
    // Removing takes longer than renaming, in which a killed process would leave neither folder.
    const replaced = getTemporaryPath(folder);
    const exists = await fs.exists(folder);
    if (exists) await fs.rename(folder, replaced);
    await fs.rename(temporary, folder);
    if (exists) await fs.remove(replaced);
  } catch (error) {
    await fs.remove(temporary).catch(() => undefined);
    throw toWriteError(path, error);
  }
}

/** Paths whose abandoned temporary files were removed: later ones are this process's own. */
const cleaned = new Set<string>();
const MAX_CLEANED = 10_000;

async function removeAbandonedOnce(path: string): Promise<void> {
  const absolute = fs.resolve(path);
  if (cleaned.has(absolute)) return;
  if (cleaned.size >= MAX_CLEANED) cleaned.clear();
  cleaned.add(absolute);
  await removeAbandonedFiles(fs.dirname(absolute), absolute);
}

/** Writes a file atomically. @throws FILE_WRITE_FAILED. */
export async function writeFileAtomic(path: string, data: string | Uint8Array): Promise<void> {
  await replaceFileAtomic(path, (file) => file.write(typeof data === "string" ? encodeUtf8(data) : data));
}
