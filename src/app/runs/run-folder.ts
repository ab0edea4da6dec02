import { access, constants, stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { LlamaGymError } from "../../core/errors.js";
import { FolderLock } from "../../core/files/folder-lock.js";
import { readRunConfig } from "../../rl/train/index.js";
import type { TrainOptions } from "./run-settings.js";

/**
 * Checks that a new run can be stored in a folder. @throws INVALID_STATE if it contains a run,
 * FILE_WRITE_FAILED.
 */
export async function checkNewRunFolder(folder: string): Promise<void> {
  if ((await readRunConfig(folder)) !== undefined)
    throw new LlamaGymError(
      "INVALID_STATE",
      `${folder} already contains a run. Resume it with --resume ${folder}, or choose another --output.`,
    );
  await checkWritable(folder);
}

/**
 * Locks a run folder and checks it. Nothing remains of the lock if opening the run fails.
 * @throws FOLDER_IN_USE, and what the check and opening the run throw.
 */
export async function openLocked<Result>(
  folder: string,
  check: (folder: string) => Promise<void>,
  open: (lock: FolderLock) => Promise<Result>,
): Promise<Result> {
  await check(folder);
  const lock = await FolderLock.acquire(folder);
  try {
    // Another process may have started a run before this one had the lock.
    await check(folder);
    return await open(lock);
  } catch (error) {
    await lock.release();
    throw error;
  }
}

/** File of a run folder with the ratings of its versions, by `llamagym eval GAME --elo`. */
export const ELO_FILE = "elo.json";

/** Finds the folder of the run that saved an adapter or a checkpoint; undefined for none. */
export async function findRunFolder(adapter: string | undefined): Promise<string | undefined> {
  if (adapter === undefined) return undefined;
  const folder = dirname(resolve(adapter));
  return (await findRun([folder, dirname(folder)]))?.folder;
}

/**
 * Finds the settings of the run, of training or fine-tuning, that saved an adapter or a checkpoint.
 */
export async function findRunOfAdapter(adapter: string): Promise<Partial<TrainOptions> | undefined> {
  const folder = dirname(resolve(adapter));
  return (await findRun([folder, dirname(folder)]))?.config;
}

/** Finds the first of some folders that holds a run. */
export async function findRun(
  folders: readonly string[],
): Promise<{ readonly folder: string; readonly config: Partial<TrainOptions> } | undefined> {
  for (const folder of folders) {
    const config = await readRunConfig<Partial<TrainOptions>>(folder).catch(() => undefined);
    if (config?.model !== undefined) return { folder, config };
  }
  return undefined;
}

/**
 * Checks, without writing, that a folder can be created or written to. @throws FILE_WRITE_FAILED
 */
export async function checkWritable(folder: string): Promise<void> {
  const problem = await findWriteProblem(resolve(folder));
  if (problem === undefined) return;
  throw new LlamaGymError("FILE_WRITE_FAILED", `${folder} cannot be written: ${problem}. Choose another folder.`);
}

/**
 * Checks, without writing, that a file can be created or replaced. @throws FILE_WRITE_FAILED
 */
export async function checkFileWritable(file: string): Promise<void> {
  const path = resolve(file);
  const isFolder = await stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
  const problem = isFolder ? `${path} is a folder` : await findWriteProblem(dirname(path));
  if (problem === undefined) return;
  throw new LlamaGymError("FILE_WRITE_FAILED", `${file} cannot be written: ${problem}. Choose another file.`);
}

/** Describes why a folder cannot be created or written to. */
async function findWriteProblem(folder: string): Promise<string | undefined> {
  const path = await closestExistingParent(folder);
  if (!(await stat(path)).isDirectory()) return `${path} is a file`;
  return access(path, constants.W_OK | constants.X_OK).then(
    () => undefined,
    () => `${path} is not writable`,
  );
}

async function closestExistingParent(path: string): Promise<string> {
  const exists = await stat(path).then(
    () => true,
    () => false,
  );
  return exists || dirname(path) === path ? path : closestExistingParent(dirname(path));
}
