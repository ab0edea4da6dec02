import { stat } from "node:fs/promises";
import { LlamaGymError } from "../../core/errors.js";
import { hashFile as hashContent } from "../../core/files/checksums.js";
import { toReadError } from "../../core/files/file-errors.js";
import { parseExportReference } from "./load-exports.js";

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

/**
 * Returns the hashes of the files that a run in an environment names: the modules of its algorithm
 * and environment, and files in the environment's options, such as its tasks and its reward.
 */
export async function hashNamedFiles({
  algorithm,
  env,
  envOptions,
}: {
  readonly algorithm: string;
  readonly env: string;
  readonly envOptions: Readonly<Record<string, unknown>>;
}): Promise<Readonly<Record<string, string>>> {
  const hashes: Record<string, string> = {};
  for (const reference of [algorithm, env, ...listTexts(envOptions)]) {
    const { path } = parseExportReference(reference);
    const file = await stat(path).catch(() => undefined);
    if (file?.isFile() === true) hashes[path] = await hashFile(path);
  }
  return hashes;
}

/** Calls `onWarning` for each file that differs from when the run started. */
export function reportChangedFiles(
  saved: Readonly<Record<string, string>> = {},
  current: Readonly<Record<string, string>>,
  onWarning: (message: string) => void,
): void {
  for (const [path, hash] of Object.entries(saved)) if (current[path] !== hash) onWarning(changedFileWarning(path));
}

export function changedFileWarning(path: string): string {
  return `${path} has changed since the run started, so the resumed run differs from an uninterrupted one.`;
}

function listTexts(value: unknown): string[] {
  if (typeof value === "string") return [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(listTexts) : [];
}
