import { fs, system } from "#platform";
import { getSystemErrorCode } from "../files/file-errors.js";
import { getOwnerName, isLeftover } from "../files/temporary-path.js";
import type { WeightLocation } from "../../engine/graph/index.js";
import { releaseMemory } from "../../engine/runtime/index.js";

const FOLDER_PREFIX = "llamagym-weights-";
const FILE_NAME = "weights.bin";
/** Age of a folder of a process that cannot be seen from here, such as one of another container, above which it is removed. */
const MAX_AGE_DAYS = 14;

/** Alignment of tensors that sessions map. */
const ALIGNMENT = 4096;

/** A parameter's tensors by their names in graphs. */
export type TensorParts = ReadonlyMap<string, Uint8Array>;

/** Reads a parameter's parts; `scratch` may hold its float32 values and is reused. */
export type ReadTensorParts = (name: string, scratch: Float32Array) => Promise<TensorParts>;

/**
 * A temporary file of converted parameters, which sessions map: pageable memory shared by all sessions. Deleted by
 * `remove()` or when the process exits.
 */
export class MappedWeightFile {
  private readonly removeExitHandler: () => void;

  private constructor(
    readonly folder: string,
    readonly locations: ReadonlyMap<string, WeightLocation>,
  ) {
    this.removeExitHandler = system.onExit(() => fs.removeSync(folder));
  }

  /** Writes parameters of at most `maxElements` values; returns undefined when the temporary folder has no space. */
  static async create(
    names: Iterable<string>,
    maxElements: number,
    read: ReadTensorParts,
  ): Promise<MappedWeightFile | undefined> {
    await removeStaleFolders();
    const folder = await fs.makeTempFolder(fs.join(system.tempFolder, FOLDER_PREFIX + getOwnerName()));
    try {
      const locations = await writeParts(fs.join(folder, FILE_NAME), names, maxElements, read);
      return new MappedWeightFile(folder, locations);
    } catch (error) {
      await fs.remove(folder);
      if (["ENOSPC", "EDQUOT", "EROFS"].includes(getSystemErrorCode(error) ?? "")) return undefined;
      throw error;
    }
  }

  async remove(): Promise<void> {
    this.removeExitHandler();
    await fs.remove(this.folder);
  }
}

async function writeParts(
  path: string,
  names: Iterable<string>,
  maxElements: number,
  read: ReadTensorParts,
): Promise<Map<string, WeightLocation>> {
  const locations = new Map<string, WeightLocation>();
  const file = await fs.open(path, "create");
  const scratch = new Float32Array(maxElements);
  try {
    let offset = 0;
    for (const name of names) {
      // Bytes under two names are written once.
      const written = new Map<Uint8Array, WeightLocation>();
      for (const [part, bytes] of await read(name, scratch)) {
        let location = written.get(bytes);
        if (location === undefined) {
          location = { file: FILE_NAME, offset, byteLength: bytes.byteLength };
          await file.write(bytes, offset);
          offset = Math.ceil((offset + bytes.byteLength) / ALIGNMENT) * ALIGNMENT;
          written.set(bytes, location);
        }
        locations.set(part, location);
      }
    }
  } finally {
    await file.close();
    releaseMemory([scratch.buffer]);
  }
  return locations;
}

/** Removes folders left by processes that no longer run. */
async function removeStaleFolders(): Promise<void> {
  const names = await fs.list(system.tempFolder).catch((): string[] => []);
  for (const name of names) {
    if (!name.startsWith(FOLDER_PREFIX)) continue;
    const folder = fs.join(system.tempFolder, name);
    if (await isLeftover(folder, name.slice(FOLDER_PREFIX.length), MAX_AGE_DAYS))
      await fs.remove(folder).catch(() => {});
  }
}
