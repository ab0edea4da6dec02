import { assets, createHash, fs, system } from "#platform";
import { z } from "zod";
import { decodeUtf8 } from "../../core/bytes.js";
import { LlamaGymError } from "../../core/errors.js";
import { formatBytes } from "../../core/format.js";
import { printWarningOnce } from "../../core/terminal-text.js";
import type { WeightLocation } from "../../engine/graph/index.js";
import { getCacheFolder } from "../../core/files/cache-folder.js";
import { toWriteError } from "../../core/files/file-errors.js";
import { verifyChecksums, writeChecksums } from "../../core/files/checksums.js";
import { getTemporaryPath, getOwnerName, isLeftover, removeAbandonedFiles } from "../../core/files/temporary-path.js";
import { rememberHash } from "../../core/files/verified-files.js";
import type { WeightFile } from "../files/weight-file.js";
import { withLock } from "../../core/files/with-lock.js";
import { writeFileAtomic } from "../../core/files/write-file-atomic.js";
import type { WeightBits } from "./estimate-model-memory.js";

/** Incremented whenever the conversion of weights or the format of entries changes. */
const FORMAT_VERSION = 2;

export const WEIGHTS_FILE = "weights.bin";
const INDEX_FILE = "index.json";

/** Largest size of all entries together, unless `LLAMAGYM_CACHE_GB` is set. */
const DEFAULT_MAX_BYTES = 20e9;
/** Space that stays free on the disk. */
const MIN_FREE_BYTES = 1e9;
/** Age at which the mark of a process that cannot be seen from here is ignored. */
const MAX_USE_DAYS = 14;

const indexSchema = z.object({
  version: z.literal(FORMAT_VERSION),
  /** The model's folder or file. */
  source: z.string(),
  bits: z.union([z.literal(32), z.literal(8), z.literal(4)]),
  size: z.int(),
  tensors: z.record(
    z.string(),
    z.object({
      offset: z.int(),
      byteLength: z.int(),
      packed: z.array(z.string()).optional(),
      isVariable: z.boolean().optional(),
    }),
  ),
});

/** Converted weights that sessions map. */
export interface MappedWeights {
  readonly folder: string;
  readonly locations: ReadonlyMap<string, WeightLocation>;
  /** Declares that nothing uses the weights any more. */
  remove(): Promise<void>;
}

/** Writes converted weights to a new file and returns their locations. */
export type WriteWeights = (path: string) => Promise<ReadonlyMap<string, WeightLocation>>;

/** What an entry is made of. */
export interface ConversionSource {
  readonly file: WeightFile;
  readonly bits: WeightBits;
  /** How the weights are converted, in any form that differs where the results do. */
  readonly conversion: unknown;
  /** Bytes of the converted weights. */
  readonly size: number;
  readonly write: WriteWeights;
}

/** An entry of the cache. */
export interface CachedWeightsInfo {
  readonly key: string;
  /** The model's folder or file; undefined for an entry that is damaged or of another version. */
  readonly source: string | undefined;
  readonly bits: WeightBits | undefined;
  readonly bytes: number;
  /** Time of the last use, in milliseconds since 1970. */
  readonly usedMs: number;
  /** Whether a running process uses it. */
  readonly isInUse: boolean;
}

const getRoot = () => fs.join(getCacheFolder(), "weights");
const getUsesFolder = () => fs.join(getRoot(), ".uses");

/**
 * Opens converted weights in the cache, which converts and stores them first if they are missing or
 * damaged. One process converts while others wait. Returns undefined, with a warning, where they
 * cannot be stored.
 * @throws what reading the source throws.
 */
export async function openCachedWeights(source: ConversionSource): Promise<MappedWeights | undefined> {
  const key = await computeKey(source);
  try {
    return await withEntryLock(key, async () => {
      let locations = await readEntry(key);
      if (locations === undefined) {
        await makeRoom(source.size);
        await writeEntry(key, source);
        locations = await readEntry(key);
      }
      if (locations === undefined) throw new LlamaGymError("FILE_WRITE_FAILED", `${getFolder(key)} was removed.`);
      await fs.touch(fs.join(getFolder(key), INDEX_FILE));
      return useEntry(key, locations);
    });
  } catch (error) {
    if (!(error instanceof LlamaGymError) || error.code !== "FILE_WRITE_FAILED") throw error;
    // A cache that is read-only may still have the entry, which nothing removes then.
    const locations = await readEntry(key).catch(() => undefined);
    if (locations !== undefined) return { folder: getFolder(key), locations, remove: async () => {} };
    printWarningOnce(`Converted weights are not kept, and are converted again at each start: ${error.message}`);
    return undefined;
  }
}

/** Lists the entries, those used last first. */
export async function listCachedWeights(): Promise<CachedWeightsInfo[]> {
  const names = await fs.list(getRoot()).catch((): string[] => []);
  const inUse = await listKeysInUse();
  const entries: CachedWeightsInfo[] = [];
  for (const key of names.filter((name) => !name.startsWith("."))) {
    const index = await readIndex(key);
    const weights = await fs.stat(fs.join(getFolder(key), WEIGHTS_FILE)).catch(() => undefined);
    const status = await fs.stat(fs.join(getFolder(key), INDEX_FILE)).catch(() => undefined);
    entries.push({
      key,
      source: index?.source,
      bits: index?.bits,
      bytes: weights?.size ?? 0,
      usedMs: status?.modifiedMs ?? 0,
      isInUse: inUse.has(key),
    });
  }
  return entries.sort((one, other) => other.usedMs - one.usedMs);
}

/**
 * Removes the entries that no running process uses, and what killed processes left; returns the
 * removed ones.
 */
export async function clearCachedWeights(): Promise<CachedWeightsInfo[]> {
  await removeAbandonedFiles(getRoot());
  const removed: CachedWeightsInfo[] = [];
  for (const entry of await listCachedWeights()) if (await removeUnused(entry.key)) removed.push(entry);
  return removed;
}

/** Returns the largest size of all entries together, in bytes. @throws INVALID_ARGUMENT */
export function getMaxCacheBytes(): number {
  const text = system.env.LLAMAGYM_CACHE_GB;
  if (text === undefined || text.trim() === "") return DEFAULT_MAX_BYTES;
  const value = Number(text);
  if (value >= 0) return value * 1e9;
  throw new LlamaGymError("INVALID_ARGUMENT", `LLAMAGYM_CACHE_GB must be a number of gigabytes >= 0, got "${text}".`);
}

const getFolder = (key: string) => fs.join(getRoot(), key);

/**
 * Identifies the files by paths, sizes and times, and everything that the converted bytes depend
 * on.
 */
async function computeKey({ file, bits, conversion }: ConversionSource): Promise<string> {
  const entries = [...file.entries.values()];
  const files: unknown[] = [];
  for (const path of new Set(entries.map((entry) => entry.file))) {
    const realpath = await fs.realpath(path);
    const { size, changedMs } = await fs.stat(realpath);
    files.push([realpath, size, changedMs]);
  }
  const tensors = entries.map(({ name, dtype, shape, file: path, offset }) => [name, dtype, shape, path, offset]);
  const identity = { files, tensors, bits, conversion, version: [FORMAT_VERSION, readPackageVersion(), system.arch] };
  return createHash("sha256").update(JSON.stringify(identity)).hex().slice(0, 32);
}

function readPackageVersion(): unknown {
  return (JSON.parse(decodeUtf8(fs.readBytesSync(assets.path("package.json")))) as { version: unknown }).version;
}

async function withEntryLock<Result>(key: string, work: () => Promise<Result>): Promise<Result> {
  return withLock(fs.join(getRoot(), ".locks", key), work);
}

async function readIndex(key: string): Promise<z.infer<typeof indexSchema> | undefined> {
  const text = await fs.readText(fs.join(getFolder(key), INDEX_FILE)).catch(() => undefined);
  if (text === undefined) return undefined;
  try {
    return indexSchema.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}

/** Returns the locations of an entry's tensors; undefined, after a warning, for a damaged one. */
async function readEntry(key: string): Promise<Map<string, WeightLocation> | undefined> {
  const folder = getFolder(key);
  if (!(await fs.exists(folder))) return undefined;
  const problem = await verifyChecksums(folder).then(
    () => undefined,
    (error: unknown) => (error as Error).message,
  );
  const index = await readIndex(key);
  if (problem === undefined && index !== undefined)
    return new Map(
      Object.entries(index.tensors).map(([name, location]) => [name, { file: WEIGHTS_FILE, ...location }]),
    );
  printWarningOnce(`${problem ?? `${fs.join(folder, INDEX_FILE)} is unreadable.`} The weights are converted again.`);
  return undefined;
}

/**
 * Writes an entry under a temporary name and renames it; replaces a damaged one. @throws
 * FILE_WRITE_FAILED
 */
async function writeEntry(key: string, { file, bits, size, write }: ConversionSource): Promise<void> {
  const folder = getFolder(key);
  await removeAbandonedFiles(getRoot());
  const temporary = getTemporaryPath(folder);
  try {
    await fs.makeFolder(temporary);
    const tensors = [...(await write(fs.join(temporary, WEIGHTS_FILE)))].map(
      ([name, { offset, byteLength, packed, isVariable }]) =>
        [name, { offset, byteLength, packed, isVariable }] as const,
    );
    await syncFile(fs.join(temporary, WEIGHTS_FILE));
    const index = { version: FORMAT_VERSION, source: file.path, bits, size, tensors: Object.fromEntries(tensors) };
    await writeFileAtomic(fs.join(temporary, INDEX_FILE), JSON.stringify(index));
    const hashes = await writeChecksums(temporary, [WEIGHTS_FILE, INDEX_FILE]);
    await fs.remove(folder);
    await fs.rename(temporary, folder);
    await rememberHash(fs.join(folder, WEIGHTS_FILE), hashes.get(WEIGHTS_FILE)!);
  } catch (error) {
    await fs.remove(temporary).catch(() => undefined);
    throw toWriteError(folder, error);
  }
}

/** Flushes a file: after a crash, an entry must not have a name without its contents. */
async function syncFile(path: string): Promise<void> {
  const file = await fs.open(path, "update");
  await file.sync().finally(() => file.close());
}

/** Marks an entry as used by this process, so that no process removes it. */
async function useEntry(key: string, locations: ReadonlyMap<string, WeightLocation>): Promise<MappedWeights> {
  const mark = fs.join(getUsesFolder(), `${key}.${getOwnerName()}${crypto.randomUUID().slice(0, 8)}`);
  await writeFileAtomic(mark, "");
  const removeExitHandler = system.onExit(() => fs.removeSync(mark));
  const remove = async (): Promise<void> => {
    removeExitHandler();
    await fs.remove(mark);
  };
  return { folder: getFolder(key), locations, remove };
}

/**
 * Returns the keys of entries that running processes use; removes the marks of processes that have
 * ended.
 */
async function listKeysInUse(): Promise<Set<string>> {
  const keys = new Set<string>();
  for (const name of await fs.list(getUsesFolder()).catch((): string[] => [])) {
    const end = name.indexOf(".");
    if (end <= 0) continue;
    const path = fs.join(getUsesFolder(), name);
    if (await isLeftover(path, name.slice(end + 1), MAX_USE_DAYS)) await fs.remove(path).catch(() => undefined);
    else keys.add(name.slice(0, end));
  }
  return keys;
}

/** Removes an entry unless a process uses it or is opening it. */
async function removeUnused(key: string): Promise<boolean> {
  let isRemoved = false;
  await withEntryLock(key, async () => {
    if ((await listKeysInUse()).has(key)) return;
    await fs.remove(getFolder(key));
    isRemoved = true;
  });
  return isRemoved;
}

/**
 * Removes entries, those used longest ago first, until another one fits. @throws FILE_WRITE_FAILED
 * if none does.
 */
async function makeRoom(bytes: number): Promise<void> {
  const root = getRoot();
  const maxBytes = getMaxCacheBytes();
  const fail = (problem: string): never => {
    throw new LlamaGymError("FILE_WRITE_FAILED", `${formatBytes(bytes)} ${problem}`);
  };
  if (bytes > maxBytes) fail(`are more than the ${formatBytes(maxBytes)} that the cache may take (LLAMAGYM_CACHE_GB).`);
  const entries = await listCachedWeights();
  const getFree = () => fs.freeBytes(root).catch(() => Infinity);
  let total = entries.reduce((sum, entry) => sum + entry.bytes, 0);
  for (const { key, bytes: freed } of entries.reverse()) {
    if (total + bytes <= maxBytes && bytes + MIN_FREE_BYTES <= (await getFree())) return;
    if (await removeUnused(key)) total -= freed;
  }
  if (total + bytes > maxBytes)
    fail(`do not fit next to the entries in use in the ${formatBytes(maxBytes)} of the cache (LLAMAGYM_CACHE_GB).`);
  const free = await getFree();
  if (bytes + MIN_FREE_BYTES > free)
    fail(
      `do not fit on the disk of ${root}, which has ${formatBytes(free)} free. Free some space, or set LLAMAGYM_CACHE.`,
    );
}
