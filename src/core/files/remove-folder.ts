import { fs } from "#platform";
import { toWriteError } from "./file-errors.js";

/** Removes a folder and what it contains, if it exists. @throws FILE_WRITE_FAILED. */
export async function removeFolder(path: string): Promise<void> {
  try {
    await fs.remove(path);
  } catch (error) {
    throw toWriteError(path, error);
  }
}
