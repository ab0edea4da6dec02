import { constants, existsSync } from "node:fs";
import { open, readdir, realpath, type FileHandle } from "node:fs/promises";
import { basename, dirname, join, relative, isAbsolute } from "node:path";
import { LlamaGymError } from "../../core/errors.js";
import { isJsonObject, parseBoundedJson } from "../../core/json.js";
import { METRICS_FILE, ROLLOUTS_FILE } from "../../rl/tracking/index.js";

/**
 * Bytes of a JSON file that the dashboard reads: config.json and its like have a few kB, results of
 * a large sweep a few MB.
 */
const MAX_JSON_BYTES = 16 * 2 ** 20;
/** Arrays, objects and strings of a JSON file. */
const MAX_JSON_NODES = 1_000_000;
/** Bytes of a line of metrics or a log. */
const MAX_LINE_BYTES = 2 ** 20;
/** Bytes of a line of recorded rollouts, compressed. */
const MAX_ROLLOUT_BYTES = 64 * 2 ** 20;
/** Bytes read at a time, so that other requests run between the parts of a large file. */
const READ_BYTES = 4 * 2 ** 20;
/** Levels of folders between the folder of runs and a run: sweeps and groups of runs. */
const MAX_DEPTH = 4;

const ID_PART = /^(?!\.{1,2}$)[^/\\\0]+$/;

function notFound(id: string): LlamaGymError {
  return new LlamaGymError("FILE_NOT_FOUND", `There is no run ${JSON.stringify(id)} in this folder.`);
}

/** Whether an id is a relative path without "..", "." and backslashes. */
export function isRunId(id: string): boolean {
  const parts = id.split("/");
  return parts.length <= MAX_DEPTH && parts.every((part) => ID_PART.test(part));
}

/** The folder of runs. Only files inside it can be opened through it. */
export class RunsFolder {
  private constructor(
    readonly root: string,
    /** The one run or sweep that is visible; undefined for all. */
    readonly only: string | undefined,
  ) {}

  /** Opens a folder of runs, or that of one run or sweep. @throws FILE_NOT_FOUND */
  static async open(path: string): Promise<RunsFolder> {
    const root = await realpath(path).catch(() => undefined);
    if (root === undefined)
      throw new LlamaGymError("FILE_NOT_FOUND", `There is no folder ${path}. Name the folder that contains the runs.`);
    const isRun = [METRICS_FILE, "config.json", "sweep.json"].some((name) => existsSync(join(root, name)));
    return isRun ? new RunsFolder(dirname(root), basename(root)) : new RunsFolder(root, undefined);
  }

  /**
   * Returns the folder of a run. @throws FILE_NOT_FOUND for ids that are no folder below the root,
   * and for links.
   */
  async folder(id: string): Promise<string> {
    if (!isRunId(id) || (this.only !== undefined && `${id}/`.indexOf(`${this.only}/`) !== 0)) throw notFound(id);
    const path = join(this.root, id);
    if ((await realpath(path).catch(() => undefined)) !== path) throw notFound(id);
    return path;
  }

  /**
   * Opens a file of a run for reading. @throws FILE_NOT_FOUND also for links and paths through
   * links.
   */
  async openFile(id: string, name: string): Promise<FileHandle> {
    const folder = await this.folder(id);
    const path = join(folder, name);
    const inside = relative(folder, path);
    if (inside.startsWith("..") || isAbsolute(inside) || (await realpath(path).catch(() => undefined)) !== path)
      throw new LlamaGymError("FILE_NOT_FOUND", `The run ${JSON.stringify(id)} has no ${name}.`);
    // A named pipe would block without O_NONBLOCK; links are refused even if they appear between
    // the check and this call.
    const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    if ((await file.stat()).isFile()) return file;
    await file.close();
    throw new LlamaGymError("FILE_NOT_FOUND", `${name} of the run ${JSON.stringify(id)} is not a file.`);
  }

  /** Lists the names in a subfolder of a run; empty if there is none. */
  async list(id: string, subfolder: string): Promise<string[]> {
    const path = join(await this.folder(id), subfolder);
    if ((await realpath(path).catch(() => undefined)) !== path) return [];
    return readdir(path).catch(() => []);
  }

  /**
   * Reads a JSON object of a run; undefined if there is no such file.
   * @throws FILE_CORRUPT for what is no JSON object or too large.
   */
  async readJson(id: string, name: string): Promise<Readonly<Record<string, unknown>> | undefined> {
    const file = await this.openFile(id, name).catch(() => undefined);
    if (file === undefined) return undefined;
    try {
      const { size } = await file.stat();
      if (size > MAX_JSON_BYTES) throw new Error(`it has ${size} bytes, at most ${MAX_JSON_BYTES} are read`);
      const value: unknown = parseBoundedJson(await file.readFile("utf8"), MAX_JSON_NODES);
      if (isJsonObject(value)) return value;
      throw new Error("it contains no JSON object");
    } catch (error) {
      throw new LlamaGymError("FILE_CORRUPT", `${name} cannot be read: ${(error as Error).message}.`, { cause: error });
    } finally {
      await file.close();
    }
  }
}

/** Where reading of a growing file stopped. */
export interface FileCursor {
  /** Inode: another number means that the file was replaced. */
  readonly file: number;
  /** Bytes read so far; always the end of a line. */
  readonly offset: number;
}

/** New complete lines of a file. */
export interface NewLines {
  readonly lines: readonly string[];
  readonly cursor: FileCursor;
  /** Whether the lines begin another file, or one that was shortened. */
  readonly isReset: boolean;
  /** Whether the file has more complete lines. */
  readonly hasMore: boolean;
}

const START: FileCursor = { file: 0, offset: 0 };

/**
 * Reads the complete lines after a cursor, up to 4 MB at a time; undefined if there is no such
 * file.
 */
export async function readNewLines(
  runs: RunsFolder,
  id: string,
  name: string,
  cursor: FileCursor = START,
): Promise<NewLines | undefined> {
  const file = await runs.openFile(id, name).catch(() => undefined);
  if (file === undefined) return undefined;
  const maxLineBytes = name === ROLLOUTS_FILE ? MAX_ROLLOUT_BYTES : MAX_LINE_BYTES;
  try {
    const { ino, size } = await file.stat();
    const isReset = cursor.file !== ino || size < cursor.offset;
    const offset = isReset ? 0 : cursor.offset;
    for (let length = READ_BYTES; ; length *= 4) {
      const { buffer, bytesRead } = await file.read({
        buffer: Buffer.alloc(Math.min(length, size - offset)),
        position: offset,
      });
      const bytes = buffer.subarray(0, bytesRead);
      const end = bytes.lastIndexOf(0x0a) + 1;
      const isWhole = offset + bytesRead >= size;
      // A line that is longer than the part is read again with more, and skipped when it is longer
      // than any line should be.
      if (end === 0 && !isWhole && length < maxLineBytes) continue;
      const isSkipped = end === 0 && bytesRead >= maxLineBytes;
      return {
        lines: end === 0 ? [] : bytes.toString("utf8", 0, end - 1).split("\n"),
        cursor: { file: ino, offset: offset + (isSkipped ? bytesRead : end) },
        isReset: isReset && cursor !== START,
        hasMore: !isWhole,
      };
    }
  } finally {
    await file.close();
  }
}

/**
 * Returns a cursor at the end of the complete lines of a file, and the last lines, at most
 * `maxBytes` of them.
 */
export async function readLastLines(
  runs: RunsFolder,
  id: string,
  name: string,
  maxBytes = 65_536,
): Promise<{ readonly lines: readonly string[]; readonly changedMs: number; readonly cursor: FileCursor } | undefined> {
  const file = await runs.openFile(id, name).catch(() => undefined);
  if (file === undefined) return undefined;
  try {
    const { ino, size, mtimeMs } = await file.stat();
    const start = Math.max(0, size - maxBytes);
    const { buffer, bytesRead } = await file.read({ buffer: Buffer.alloc(size - start), position: start });
    const end = buffer.subarray(0, bytesRead).lastIndexOf(0x0a) + 1;
    const lines = end === 0 ? [] : buffer.toString("utf8", 0, end - 1).split("\n");
    return {
      lines: start === 0 ? lines : lines.slice(1),
      changedMs: mtimeMs,
      cursor: { file: ino, offset: start + end },
    };
  } finally {
    await file.close();
  }
}
