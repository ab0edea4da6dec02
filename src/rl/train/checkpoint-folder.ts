import { mkdir, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { LlamaGymError } from "../../core/errors.js";
import { readJson, SafetensorsFile, writeJson, writeSafetensors } from "../../models/files/index.js";
import type { OptimizerState } from "../../engine/optim/index.js";
import { checkFormatVersion } from "./check-format-version.js";

/** What a checkpoint holds besides the trained parameters; `rest` is JSON. */
export interface CheckpointContent<State> {
  readonly optimizer: OptimizerState;
  readonly state: State;
}

/** The layout of what is saved; another one is refused. */
const VERSION = 2;
const STATE_FILE = "state.json";
const OPTIMIZER_FILE = "optimizer.safetensors";
const SAVE_TOTAL_LIMIT = 2;
/** Behind the name of a checkpoint that is being written. */
const PARTIAL_SUFFIX = ".partial";

/**
 * Writes a checkpoint as a folder of its own, under a temporary name until it is whole, and deletes all but the last two.
 * `saveModel` puts the trained parameters into it. Throws FILE_WRITE_FAILED; the checkpoints before it stand.
 */
export async function writeCheckpoint<State extends object>(
  parent: string,
  step: number,
  { optimizer, state }: CheckpointContent<State>,
  saveModel: (folder: string) => Promise<void>,
): Promise<string> {
  const folder = join(parent, String(step).padStart(6, "0"));
  const partialFolder = folder + PARTIAL_SUFFIX;
  try {
    await removePartialCheckpoints(parent);
    await mkdir(partialFolder, { recursive: true });
    await saveModel(partialFolder);
    const moments = optimizer.moments.map((data, i) => ({ name: `moment.${i}`, shape: [data.length], data }));
    await writeSafetensors(join(partialFolder, OPTIMIZER_FILE), moments);
    const { kind, step } = optimizer;
    await writeJson(join(partialFolder, STATE_FILE), { version: VERSION, ...state, optimizer: { kind, step } });
    await rename(partialFolder, folder);
  } catch (error) {
    if (error instanceof LlamaGymError) throw error;
    throw new LlamaGymError("FILE_WRITE_FAILED", `The checkpoint ${folder} cannot be written: ${String(error)}`, {
      cause: error,
    });
  }
  for (const name of (await listCheckpoints(parent)).slice(0, -SAVE_TOTAL_LIMIT))
    await rm(join(parent, name), { recursive: true, force: true });
  return folder;
}

/** Takes away what a process that was killed while it saved left behind. */
async function removePartialCheckpoints(parent: string): Promise<void> {
  for (const name of await readdir(parent).catch(() => []))
    if (name.endsWith(PARTIAL_SUFFIX)) await rm(join(parent, name), { recursive: true, force: true });
}

/** The newest whole checkpoint of a run; undefined when there is none. */
export async function findLatestCheckpoint(parent: string): Promise<string | undefined> {
  const latest = (await listCheckpoints(parent)).at(-1);
  return latest === undefined ? undefined : join(parent, latest);
}

async function listCheckpoints(parent: string): Promise<string[]> {
  const names = await readdir(parent).catch(() => []);
  return names.filter((name) => /^\d+$/.test(name)).sort((a, b) => Number(a) - Number(b));
}

/** What a checkpoint holds. Throws FILE_NOT_FOUND, FILE_CORRUPT, and RUN_INCOMPATIBLE for one of another version. */
export async function readCheckpoint<State>(folder: string): Promise<CheckpointContent<State>> {
  const advice = "Go on with the version that made it, or start anew from its model.";
  const { optimizer, ...state } = checkFormatVersion(await readJson(join(folder, STATE_FILE)), VERSION, folder, advice);
  const savedOptimizer = optimizer as unknown as Pick<OptimizerState, "kind" | "step">;
  return { state: state as State, optimizer: { ...savedOptimizer, moments: await readMoments(folder) } };
}

async function readMoments(folder: string): Promise<Float32Array[]> {
  const file = await SafetensorsFile.open(join(folder, OPTIMIZER_FILE));
  try {
    const moments: Float32Array[] = [];
    for (let i = 0; i < file.entries.size; i++) moments.push(await file.readFloat32(`moment.${i}`));
    return moments;
  } finally {
    await file.close();
  }
}
