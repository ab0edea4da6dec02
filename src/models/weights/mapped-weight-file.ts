import { fs, system } from "#platform";
import { getSystemErrorCode } from "../../core/files/file-errors.js";
import { getOwnerName, isLeftover } from "../../core/files/temporary-path.js";
import type { WeightLocation } from "../../engine/graph/index.js";
import { WEIGHTS_FILE, type MappedWeights, type WriteWeights } from "./weight-cache.js";

const FOLDER_PREFIX = "llamagym-weights-";
/**
 * Age of a folder of a process that cannot be seen from here, such as one of another container,
 * above which it is removed.
 */
const MAX_AGE_DAYS = 14;

/**
 * A temporary file of converted parameters, which sessions map: pageable memory shared by all
 * sessions. Deleted by `remove()` or when the process exits.
 */
export class MappedWeightFile implements MappedWeights {
  private readonly removeExitHandler: () => void;

  private constructor(
    readonly folder: string,
    readonly locations: ReadonlyMap<string, WeightLocation>,
  ) {
    this.removeExitHandler = system.onExit(() => fs.removeSync(folder));
  }

  /** Writes the weights; returns undefined when the temporary folder has no space. */
  static async create(write: WriteWeights): Promise<MappedWeightFile | undefined> {
    await removeStaleFolders();
    const folder = await fs.makeTempFolder(fs.join(system.tempFolder, FOLDER_PREFIX + getOwnerName()));
    try {
      return new MappedWeightFile(folder, await write(fs.join(folder, WEIGHTS_FILE)));
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
