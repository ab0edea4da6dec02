import { fs } from "#platform";
import { LlamaGymError } from "../../core/errors.js";
import { readJson, readJsonIfExists, writeJson } from "../../core/files/json-file.js";
import type { JsonObject } from "../../core/json.js";
import { checkFormatVersion } from "./check-format-version.js";

/** Version of the files in a run folder. */
const RUN_FORMAT_VERSION = 2;
const CONFIG_FILE = "config.json";
const CHECKPOINTS_FOLDER = "checkpoints";

/** Folders in which commands save a run's result. */
const RESULT_FOLDERS = ["adapter", "model"];

/** Returns the folder of the result in a run folder; the path itself where there is none. */
export async function findRunResult(path: string): Promise<string> {
  for (const name of RESULT_FOLDERS) {
    const folder = fs.join(path, name);
    if (await fs.exists(folder)) return folder;
  }
  return path;
}

/** Returns the folder of a run's checkpoints. */
export function getCheckpointDir(folder: string): string {
  return fs.join(folder, CHECKPOINTS_FOLDER);
}

/**
 * Reads the settings of the run in a folder; undefined if there is none.
 * @throws FILE_CORRUPT, and RUN_INCOMPATIBLE for a run of another version.
 */
export async function readRunConfig<Config extends object>(folder: string): Promise<Config | undefined> {
  const saved = await readJsonIfExists(fs.join(folder, CONFIG_FILE));
  if (saved === undefined) return undefined;
  const advice = "Resume it with the version that wrote it, or start a new run from its model.";
  return checkFormatVersion(saved, RUN_FORMAT_VERSION, `The run in ${folder}`, advice) as unknown as Config;
}

/**
 * Reads the settings of a run to resume. @throws FILE_NOT_FOUND for a folder without a run, and as
 * `readRunConfig`.
 */
export async function requireRunConfig<Config extends object>(folder: string): Promise<Config> {
  const config = await readRunConfig<Config>(folder);
  if (config !== undefined) return config;
  throw new LlamaGymError("FILE_NOT_FOUND", `There is no run in ${folder}: it has no ${CONFIG_FILE}.`);
}

/**
 * Writes a run's settings into its folder, which is created, and returns what was written. @throws
 * FILE_WRITE_FAILED
 */
export async function writeRunConfig(folder: string, config: object): Promise<JsonObject> {
  const path = fs.join(folder, CONFIG_FILE);
  await writeJson(path, { version: RUN_FORMAT_VERSION, ...config });
  return readJson(path);
}
