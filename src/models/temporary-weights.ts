import { rmSync } from "node:fs";
import { mkdtemp, open, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { WeightLocation } from "../graph/index.js";
import { discard } from "../runtime/discard.js";

const PREFIX = "llamagym-weights-";
const FILE = "weights.bin";

/** Sessions map tensors from multiples of this. */
const ALIGNMENT = 4096;

/** What sessions know of a parameter, by the names that graphs have for it. */
export type Parts = ReadonlyMap<string, Uint8Array>;

/** Gives a parameter's parts; its values as float32 may stand in `room`, which serves one parameter after another. */
export type ReadParts = (name: string, room: Float32Array) => Promise<Parts>;

/**
 * Parameters that their file holds otherwise than sessions read them, in a temporary file that sessions map: memory that the system
 * may take back, and that all sessions share. It goes when it is removed, or with the process.
 */
export class TemporaryWeights {
  private readonly removeAtExit = () => rmSync(this.folder, { recursive: true, force: true });

  private constructor(
    readonly folder: string,
    readonly locations: ReadonlyMap<string, WeightLocation>,
  ) {
    process.once("exit", this.removeAtExit);
  }

  /** Of parameters of at most `largest` values; undefined where the temporary folder has no room. */
  static async create(
    names: Iterable<string>,
    largest: number,
    read: ReadParts,
  ): Promise<TemporaryWeights | undefined> {
    await removeLeftovers();
    const folder = await mkdtemp(join(tmpdir(), `${PREFIX}${process.pid}-`));
    try {
      const locations = await writeParts(join(folder, FILE), names, largest, read);
      return new TemporaryWeights(folder, locations);
    } catch (error) {
      await rm(folder, { recursive: true, force: true });
      if (["ENOSPC", "EDQUOT", "EROFS"].includes((error as NodeJS.ErrnoException).code ?? "")) return undefined;
      throw error;
    }
  }

  async remove(): Promise<void> {
    process.off("exit", this.removeAtExit);
    await rm(this.folder, { recursive: true, force: true });
  }
}

async function writeParts(
  path: string,
  names: Iterable<string>,
  largest: number,
  read: ReadParts,
): Promise<Map<string, WeightLocation>> {
  const locations = new Map<string, WeightLocation>();
  const file = await open(path, "wx");
  const room = new Float32Array(largest);
  try {
    let offset = 0;
    for (const name of names) {
      // Bytes that graphs read in two ways are there once.
      const written = new Map<Uint8Array, WeightLocation>();
      for (const [part, bytes] of await read(name, room)) {
        let location = written.get(bytes);
        if (location === undefined) {
          location = { file: FILE, offset, byteLength: bytes.byteLength };
          await file.write(bytes, 0, bytes.byteLength, offset);
          offset = Math.ceil((offset + bytes.byteLength) / ALIGNMENT) * ALIGNMENT;
          written.set(bytes, location);
        }
        locations.set(part, location);
      }
    }
  } finally {
    await file.close();
    discard([room.buffer]);
  }
  return locations;
}

/** Folders of processes that ended without removing them. */
async function removeLeftovers(): Promise<void> {
  const names = await readdir(tmpdir()).catch((): string[] => []);
  for (const name of names) {
    const pid = Number(new RegExp(`^${PREFIX}(\\d+)-`).exec(name)?.[1]);
    if (Number.isInteger(pid) && !isRunning(pid))
      await rm(join(tmpdir(), name), { recursive: true, force: true }).catch(() => {});
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
