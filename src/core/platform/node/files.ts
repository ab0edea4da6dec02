import fs from "node:fs";
import * as disk from "node:fs/promises";
import { basename, dirname, join, relative, resolve } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import type { FileInfo, FileSystem, OpenAppendFile, OpenFile } from "../ports.js";

/** Bytes per system call; the limit is 2 GiB. */
const MAX_CALL_BYTES = 2 ** 30;

const OPEN_FLAGS = { read: "r", create: "wx", update: fs.constants.O_RDWR | fs.constants.O_CREAT } as const;

const openDescriptor = promisify(fs.open);
const closeDescriptor = promisify(fs.close);
const readAt = promisify(fs.read);
const writeAt = promisify(fs.write);
const statDescriptor = promisify(fs.fstat);
const truncateDescriptor = promisify(fs.ftruncate);
const syncDescriptor = promisify(fs.fsync);

/**
 * Closes descriptors of files that were never closed; a collected FileHandle would throw in Node
 * 25.
 */
const unclosed = new FinalizationRegistry<number>((descriptor) => fs.close(descriptor, () => undefined));

class DescriptorFile implements OpenFile {
  private closed = false;

  constructor(private readonly descriptor: number) {
    unclosed.register(this, descriptor, this);
  }

  async size(): Promise<number> {
    return (await statDescriptor(this.descriptor)).size;
  }

  async read(target: Uint8Array, position: number): Promise<number> {
    let filled = 0;
    while (filled < target.length) {
      const length = Math.min(target.length - filled, MAX_CALL_BYTES);
      const { bytesRead } = await readAt(this.descriptor, target, filled, length, position + filled);
      if (bytesRead === 0) break;
      filled += bytesRead;
    }
    return filled;
  }

  async write(bytes: Uint8Array, position?: number): Promise<void> {
    let written = 0;
    while (written < bytes.length) {
      const length = Math.min(bytes.length - written, MAX_CALL_BYTES);
      const at = position === undefined ? null : position + written;
      written += (await writeAt(this.descriptor, bytes, written, length, at)).bytesWritten;
    }
  }

  truncate(size: number): Promise<void> {
    return truncateDescriptor(this.descriptor, size);
  }

  sync(): Promise<void> {
    return syncDescriptor(this.descriptor);
  }

  async close(): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    unclosed.unregister(this);
    await closeDescriptor(this.descriptor);
  }
}

function openAppend(path: string, mode: "create" | "append"): OpenAppendFile {
  fs.mkdirSync(dirname(path), { recursive: true });
  const descriptor = fs.openSync(path, mode === "create" ? "ax" : "a");
  return {
    append: (data) => fs.appendFileSync(descriptor, data),
    // Not by inode numbers, which change on some network file systems.
    isLinked: () => fs.fstatSync(descriptor).nlink > 0 && fs.existsSync(path),
    truncate: (size) => fs.ftruncateSync(descriptor, size),
    close: () => fs.closeSync(descriptor),
  };
}

async function* readLines(path: string): AsyncGenerator<string> {
  const stream = fs.createReadStream(path, "utf8");
  try {
    yield* createInterface({ input: stream, crlfDelay: Infinity });
  } finally {
    stream.destroy();
  }
}

async function stat(path: string): Promise<FileInfo> {
  const status = await disk.stat(path);
  const { size, mtimeMs: modifiedMs, ctimeMs: changedMs } = status;
  return { isFile: status.isFile(), isFolder: status.isDirectory(), size, modifiedMs, changedMs };
}

/**
 * Writes a byte again: utimes would set the time by the clock of this machine, not by the file
 * server's.
 */
async function touch(path: string): Promise<void> {
  const file = await disk.open(path, "r+");
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(1), 0, 1, 0);
    if (bytesRead === 1) await file.write(buffer, 0, 1, 0);
    else await file.utimes(new Date(), new Date());
  } finally {
    await file.close();
  }
}

const viewBytes = ({ buffer, byteOffset, byteLength }: Uint8Array<ArrayBuffer>) =>
  new Uint8Array(buffer, byteOffset, byteLength);

export const nodeFileSystem: FileSystem = {
  join,
  dirname,
  basename,
  relative,
  resolve,
  realpath: (path) => disk.realpath(path),
  stat,
  exists: (path) =>
    disk.access(path).then(
      () => true,
      () => false,
    ),
  existsSync: fs.existsSync,
  list: (folder, { recursive = false } = {}) => disk.readdir(folder, { recursive }),
  freeBytes: (folder) => disk.statfs(folder).then(({ bavail, bsize }) => bavail * bsize),
  readBytes: async (path) => viewBytes(await disk.readFile(path)),
  readBytesSync: (path) => viewBytes(fs.readFileSync(path)),
  readText: (path) => disk.readFile(path, "utf8"),
  readLines,
  open: async (path, mode) => new DescriptorFile(await openDescriptor(path, OPEN_FLAGS[mode])),
  openAppend,
  makeFolder: async (path) => void (await disk.mkdir(path, { recursive: true })),
  makeTempFolder: (prefix) => disk.mkdtemp(prefix),
  rename: disk.rename,
  copy: disk.copyFile,
  symlink: (target, path) => disk.symlink(target, path),
  link: disk.link,
  touch,
  remove: (path) => disk.rm(path, { recursive: true, force: true }),
  removeEmptyFolder: (path) => disk.rmdir(path),
  removeSync: (path) => fs.rmSync(path, { recursive: true, force: true }),
};
