import { access, constants, stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { LlamaGymError } from "../../core/errors.js";
import { readJsonIfExists, writeJson, type JsonObject } from "../../models/files/index.js";
import { checkFormatVersion } from "../../rl/train/check-format-version.js";
import type { TrainConfig, TrainOptions } from "./run-settings.js";

/** The layout of a run folder; another one is refused. */
const RUN_VERSION = 2;
const CONFIG_FILE = "config.json";

/**
 * The settings of the run in a folder; undefined where there is none.
 * Throws FILE_CORRUPT, and RUN_INCOMPATIBLE for a run of another version.
 */
export async function readRunConfig(folder: string): Promise<TrainOptions | undefined> {
  const saved = await readJsonIfExists(join(folder, CONFIG_FILE));
  if (saved === undefined) return undefined;
  const advice = "Go on with the version that made it, or start a new run from its adapter.";
  return checkFormatVersion(saved, RUN_VERSION, `The run in ${folder}`, advice) as unknown as TrainOptions;
}

/** The settings of the run that saved an adapter or a checkpoint; undefined where no run is known. */
export async function findRunOfAdapter(adapter: string): Promise<TrainOptions | undefined> {
  const folder = dirname(resolve(adapter));
  for (const parent of [folder, dirname(folder)]) {
    const run = await readRunConfig(parent).catch(() => undefined);
    if (run?.env !== undefined) return run;
  }
  return undefined;
}

/** Keeps a run's settings in its folder, which is made, and gives them as they were written. Throws FILE_WRITE_FAILED. */
export async function writeRunConfig(folder: string, config: TrainConfig): Promise<JsonObject> {
  const settings = JSON.parse(JSON.stringify({ version: RUN_VERSION, ...config })) as JsonObject;
  await writeJson(join(folder, CONFIG_FILE), settings);
  return settings;
}

/** Throws FILE_WRITE_FAILED for a folder that could not be made or written to; writes nothing. */
export async function checkWritable(folder: string): Promise<void> {
  const path = await closestExistingParent(resolve(folder));
  const isFolder = (await stat(path)).isDirectory();
  const problem = !isFolder
    ? `${path} is a file`
    : await access(path, constants.W_OK | constants.X_OK).then(
        () => undefined,
        () => `${path} cannot be written to`,
      );
  if (problem === undefined) return;
  throw new LlamaGymError(
    "FILE_WRITE_FAILED",
    `The run cannot be kept in ${folder}: ${problem}. Choose another folder.`,
  );
}

async function closestExistingParent(path: string): Promise<string> {
  const exists = await stat(path).then(
    () => true,
    () => false,
  );
  return exists || dirname(path) === path ? path : closestExistingParent(dirname(path));
}
