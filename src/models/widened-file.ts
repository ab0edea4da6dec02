import { rmSync } from "node:fs";
import { mkdtemp, open, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { WeightFile } from "../files/index.js";
import type { WeightLocation } from "../graph/index.js";
import { discard } from "../runtime/discard.js";
import { elementCount } from "../tensor/tensor.js";

const PREFIX = "llamagym-weights-";
const FILE = "weights.bin";

/** Sessions map tensors from multiples of this. */
const ALIGNMENT = 4096;

/**
 * Tensors that a file holds in blocks of few bits, widened to float32 in a temporary file that sessions map: memory that the
 * system may take back, and that all sessions share. It goes when it is removed, or with the process.
 */
export class WidenedFile {
  private readonly removeAtExit = () => rmSync(this.folder, { recursive: true, force: true });

  private constructor(
    readonly folder: string,
    readonly locations: ReadonlyMap<string, WeightLocation>,
  ) {
    process.once("exit", this.removeAtExit);
  }

  /** Undefined where the temporary folder has no room. */
  static async create(source: WeightFile): Promise<WidenedFile | undefined> {
    await removeLeftovers();
    const folder = await mkdtemp(join(tmpdir(), `${PREFIX}${process.pid}-`));
    try {
      const locations = await writeWidened(source, join(folder, FILE));
      return new WidenedFile(folder, locations);
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

async function writeWidened(source: WeightFile, path: string): Promise<Map<string, WeightLocation>> {
  const locations = new Map<string, WeightLocation>();
  const file = await open(path, "wx");
  const largest = Math.max(...[...source.entries.values()].map(({ shape }) => elementCount(shape)));
  const room = new Float32Array(largest);
  try {
    let offset = 0;
    for (const [name, { shape }] of source.entries) {
      const values = await source.readFloat32(name, room.subarray(0, elementCount(shape)));
      await file.write(
        new Uint8Array(values.buffer, values.byteOffset, values.byteLength),
        0,
        values.byteLength,
        offset,
      );
      locations.set(name, { file: FILE, offset, byteLength: values.byteLength });
      offset = Math.ceil((offset + values.byteLength) / ALIGNMENT) * ALIGNMENT;
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
