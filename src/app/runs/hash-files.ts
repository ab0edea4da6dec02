import { LlamaGymError } from "../../core/errors.js";
import { hashFile as hashContent } from "../../core/files/checksums.js";
import { toReadError } from "../../core/files/file-errors.js";

/**
 * Returns the hash of a file; `advice` follows the error message. @throws FILE_NOT_FOUND,
 * FILE_READ_FAILED
 */
export async function hashFile(path: string, advice = ""): Promise<string> {
  return hashContent(path).catch((error: unknown) => {
    const { code, message } = toReadError(path, error);
    throw new LlamaGymError(code, message + advice, { cause: error });
  });
}

interface SavedData {
  readonly folder: string;
  /** The hash when the run started. */
  readonly sha256: string | undefined;
}

/**
 * Returns the hash of a run's data and compares it with the one of the run to resume. `option`
 * names the setting.
 * @throws FILE_NOT_FOUND, FILE_READ_FAILED, RUN_INCOMPATIBLE for data that changed.
 */
export async function hashData(path: string, option: string, saved?: SavedData): Promise<string> {
  const sha256 = await hashFile(
    path,
    saved === undefined ? "" : ` If it was moved, give its new path with ${option} FILE.`,
  );
  if (saved?.sha256 === undefined || saved.sha256 === sha256) return sha256;
  throw new LlamaGymError(
    "RUN_INCOMPATIBLE",
    `${path} has changed since the run in ${saved.folder} started, so the run cannot be resumed on it. Restore the file, or give ` +
      `${option} the path of an unchanged copy, or start a new run.`,
  );
}
