import { fs } from "#platform";
import { z } from "zod";
import type { FileInfo } from "../platform/ports.js";
import { getCacheFolder } from "./cache-folder.js";
import { writeFileAtomic } from "./write-file-atomic.js";

const RECORDS_FILE = "verified.json";
/** Smaller files are hashed within milliseconds. */
export const MIN_REMEMBERED_BYTES = 2 ** 24;
const MAX_RECORDS = 1000;
/** A file that changed this shortly before may change again without a new time. */
const MIN_AGE_MS = 2000;

const verified = z.object({ size: z.number(), changedMs: z.number(), hash: z.string() });
const records = z.record(z.string(), verified);
type Verified = z.infer<typeof verified>;

/**
 * Checks a file by its hash, which is computed once for each change of the file: the cache folder
 * remembers sizes, times and hashes of large files. Returns whether the hash is the expected one.
 * @throws what `hashFile` throws
 */
export async function hasHash(
  path: string,
  expected: string,
  hashFile: (path: string) => Promise<string>,
): Promise<boolean> {
  const before = await fs.stat(path).catch(() => undefined);
  if (before === undefined || before.size < MIN_REMEMBERED_BYTES) return (await hashFile(path)) === expected;
  const key = await fs.realpath(path);
  const known = (await readRecords())[key];
  if (known?.hash === expected && isUnchanged(known, before)) return true;
  const hash = await hashFile(path);
  const after = await fs.stat(path);
  if (isUnchanged(before, after) && Date.now() - after.changedMs > MIN_AGE_MS)
    await addRecord(key, { size: after.size, changedMs: after.changedMs, hash });
  return hash === expected;
}

/**
 * Remembers the hash of a file that this process has just written or hashed and that no other one
 * writes.
 */
export async function rememberHash(path: string, hash: string): Promise<void> {
  const { size, changedMs } = await fs.stat(path);
  await addRecord(await fs.realpath(path), { size, changedMs, hash });
}

function isUnchanged(a: Pick<FileInfo, "size" | "changedMs">, b: Pick<FileInfo, "size" | "changedMs">): boolean {
  return a.size === b.size && a.changedMs === b.changedMs;
}

/** Returns the remembered files by their paths; none if the records are missing or unreadable. */
async function readRecords(): Promise<Partial<Record<string, Verified>>> {
  try {
    return records.parse(JSON.parse(await fs.readText(fs.join(getCacheFolder(), RECORDS_FILE))));
  } catch {
    return {};
  }
}

/**
 * Another process may drop the record at the same time, and a folder may be read-only: the file is
 * then hashed again.
 */
async function addRecord(key: string, record: Verified): Promise<void> {
  const { [key]: _, ...others } = await readRecords();
  const kept = Object.entries(others).slice(1 - MAX_RECORDS);
  const text = JSON.stringify(Object.fromEntries([...kept, [key, record]]));
  await writeFileAtomic(fs.join(getCacheFolder(), RECORDS_FILE), text).catch(() => undefined);
}
