import { createHash, fs } from "#platform";
import { LlamaGymError } from "../errors.js";
import { corruptFileError, toReadError, toWriteError } from "./file-errors.js";
import { hasHash } from "./verified-files.js";
import { writeFileAtomic } from "./write-file-atomic.js";

/**
 * Lists the SHA-256 of a folder's files in the format of `sha256sum`, which checks it with
 * `sha256sum -c SHA256SUMS`.
 */
export const CHECKSUMS_NAME = "SHA256SUMS";

/** The count reveals a file that was cut off between two lines; sha256sum ignores the comment. */
const HEADER = /^# SHA-256 of (?<count>\d+) files$/u;
/** Begins the lines of other tools, whose lists have no header. */
const FOREIGN = /^[0-9a-f]{64} /iu;
/** Names are relative and stay below the folder, which may be of others. */
const LINE = /^(?<hash>[0-9a-f]{64}) {2}(?<name>(?!\.{0,2}(?:\/|$))[^\\/:]+(?:\/(?!\.{0,2}(?:\/|$))[^\\/:]+)*)$/u;
/** Some 10,000 files. */
const MAX_BYTES = 2 ** 20;
const EDITED_ADVICE = `If you edited it, remove ${CHECKSUMS_NAME}, which is optional here.`;
const CHUNK_BYTES = 2 ** 22;

/**
 * Writes the checksums of files below a folder, named by relative paths, and drops earlier ones.
 * Returns them.
 * @throws FILE_WRITE_FAILED
 */
export async function writeChecksums(folder: string, names: readonly string[]): Promise<ReadonlyMap<string, string>> {
  return writeEntries(folder, new Map(), names);
}

/** Adds checksums of further files. @throws FILE_WRITE_FAILED, FILE_CORRUPT */
export async function addChecksums(folder: string, names: readonly string[]): Promise<void> {
  await writeEntries(folder, (await readChecksums(folder)) ?? new Map(), names);
}

/**
 * Adds the checksums of all files below a folder that have none yet. @throws FILE_WRITE_FAILED,
 * FILE_CORRUPT
 */
export async function addAllChecksums(folder: string): Promise<void> {
  const known = (await readChecksums(folder)) ?? new Map<string, string>();
  const missing = (await listFiles(folder)).filter((name) => !known.has(name));
  await writeEntries(folder, known, missing);
}

/**
 * Compares the files of a folder with their checksums, large ones once after each change; does
 * nothing in a folder without checksums, such as one of another tool.
 * @throws FILE_CORRUPT for a file that is missing or has other contents, FILE_READ_FAILED
 */
export async function verifyChecksums(folder: string): Promise<void> {
  const checksums = (await readChecksums(folder)) ?? new Map<string, string>();
  for (const [name, hash] of checksums) await verifyFile(folder, name, hash);
}

/**
 * As `verifyChecksums`, always, for a folder that must have checksums of all of its files. @throws
 * FILE_CORRUPT, FILE_READ_FAILED
 */
export async function verifyAllChecksums(folder: string): Promise<void> {
  const checksums = await readChecksums(folder);
  if (checksums === undefined) throw corruptFileError(folder, `it has no ${CHECKSUMS_NAME}`);
  const unknown = (await listFiles(folder)).find((name) => !checksums.has(name));
  if (unknown !== undefined) throw corruptFileError(fs.join(folder, unknown), `it is not listed in ${CHECKSUMS_NAME}`);
  const hasHashNow = async (path: string, expected: string) => (await hashFile(path)) === expected;
  for (const [name, hash] of checksums) await verifyFile(folder, name, hash, { check: hasHashNow, advice: "" });
}

/**
 * Compares one file with its checksum in the file's folder, if there is one. @throws FILE_CORRUPT,
 * FILE_READ_FAILED
 */
export async function verifyChecksum(path: string): Promise<void> {
  const folder = fs.dirname(path);
  const hash = (await readChecksums(folder))?.get(fs.basename(path));
  if (hash !== undefined) await verifyFile(folder, fs.basename(path), hash);
}

async function verifyFile(
  folder: string,
  name: string,
  hash: string,
  { check = async (path: string, expected: string) => hasHash(path, expected, hashFile), advice = EDITED_ADVICE } = {},
): Promise<void> {
  const path = fs.join(folder, name);
  const isIntact = await check(path, hash).catch((error: unknown) => {
    const readError = toReadError(path, error);
    if (readError.code !== "FILE_NOT_FOUND") throw readError;
    throw corruptFileError(path, `it is listed in ${CHECKSUMS_NAME} and missing`);
  });
  if (isIntact) return;
  const error = corruptFileError(path, `its SHA-256 is not the one in ${CHECKSUMS_NAME}`);
  throw new LlamaGymError(error.code, `${error.message} ${advice}`.trimEnd());
}

/**
 * Returns the checksums in a folder by file name; undefined without any. @throws FILE_CORRUPT,
 * FILE_READ_FAILED
 */
async function readChecksums(folder: string): Promise<Map<string, string> | undefined> {
  const path = fs.join(folder, CHECKSUMS_NAME);
  let text: string;
  try {
    const { size, isFile } = await fs.stat(path);
    if (!isFile || size > MAX_BYTES) throw corruptFileError(path, "it is not a list of checksums");
    text = await fs.readText(path);
  } catch (error) {
    const readError = toReadError(path, error);
    if (readError.code === "FILE_NOT_FOUND") return undefined;
    throw readError;
  }
  const [header, ...lines] = text.split("\n");
  const last = lines.pop();
  const entries = lines.map((line) => LINE.exec(line)?.groups);
  const count = HEADER.exec(header)?.groups?.count;
  if (FOREIGN.test(header)) return undefined;
  if (last !== "" || entries.includes(undefined) || count !== String(entries.length))
    throw corruptFileError(path, "it is not a complete list of checksums");
  return new Map(entries.map((entry) => [entry!.name, entry!.hash]));
}

async function writeEntries(
  folder: string,
  known: ReadonlyMap<string, string>,
  names: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const entries = new Map(known);
  try {
    for (const name of names) entries.set(name, await hashFile(fs.join(folder, name)));
  } catch (error) {
    throw toWriteError(fs.join(folder, CHECKSUMS_NAME), error);
  }
  const lines = [...entries].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, hash]) => `${hash}  ${name}\n`);
  await writeFileAtomic(fs.join(folder, CHECKSUMS_NAME), `# SHA-256 of ${lines.length} files\n${lines.join("")}`);
  return entries;
}

/**
 * Returns the relative paths of all files below a folder, apart from the list of checksums and the
 * model card, which people edit.
 */
async function listFiles(folder: string): Promise<string[]> {
  const files: string[] = [];
  try {
    for (const name of await fs.list(folder, { recursive: true })) {
      if (name === CHECKSUMS_NAME || name === "README.md") continue;
      if ((await fs.stat(fs.join(folder, name))).isFile) files.push(name.replaceAll("\\", "/"));
    }
  } catch (error) {
    throw toReadError(folder, error);
  }
  return files;
}

/** Returns the SHA-256 of a file, which is read in chunks. Throws the errors of the file system. */
export async function hashFile(path: string): Promise<string> {
  const hash = createHash("sha256");
  const file = await fs.open(path, "read");
  try {
    const chunk = new Uint8Array(Math.min(CHUNK_BYTES, Math.max(1, await file.size())));
    for (let position = 0; ;) {
      const length = await file.read(chunk, position);
      if (length === 0) return hash.hex();
      hash.update(chunk.subarray(0, length));
      position += length;
    }
  } finally {
    await file.close();
  }
}
