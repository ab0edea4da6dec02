import { mkdir, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { LlamaGymError } from "../errors.js";
import { readJson, SafetensorsFile, writeJson, writeSafetensors } from "../files/index.js";
import type { OptimizerState } from "../optim/index.js";
import { withoutVersion } from "./layout-version.js";

/** What a checkpoint holds besides the trained parameters; `rest` is JSON. */
export interface CheckpointContent<Rest> {
  readonly optimizer: OptimizerState;
  readonly rest: Rest;
}

/** The layout of what is saved; another one is refused. */
const VERSION = 1;
const STATE_FILE = "state.json";
const OPTIMIZER_FILE = "optimizer.safetensors";
const KEPT_CHECKPOINTS = 2;
/** Behind the name of a checkpoint that is being written. */
const UNFINISHED = ".partial";

/**
 * Writes a checkpoint as a folder of its own, under a temporary name until it is whole, and deletes all but the last two.
 * `saveModel` puts the trained parameters into it. Throws FILE_WRITE_FAILED; the checkpoints before it stand.
 */
export async function writeCheckpoint<Rest extends object>(
  parent: string,
  updates: number,
  { optimizer, rest }: CheckpointContent<Rest>,
  saveModel: (folder: string) => Promise<void>,
): Promise<string> {
  const folder = join(parent, String(updates).padStart(6, "0"));
  const unfinished = folder + UNFINISHED;
  try {
    await removeUnfinished(parent);
    await mkdir(unfinished, { recursive: true });
    await saveModel(unfinished);
    const moments = optimizer.moments.map((data, i) => ({ name: `moment.${i}`, shape: [data.length], data }));
    await writeSafetensors(join(unfinished, OPTIMIZER_FILE), moments);
    const { kind, step } = optimizer;
    await writeJson(join(unfinished, STATE_FILE), { version: VERSION, ...rest, optimizer: { kind, step } });
    await rename(unfinished, folder);
  } catch (error) {
    if (error instanceof LlamaGymError) throw error;
    throw new LlamaGymError("FILE_WRITE_FAILED", `The checkpoint ${folder} cannot be written: ${String(error)}`, {
      cause: error,
    });
  }
  for (const old of (await listCheckpoints(parent)).slice(0, -KEPT_CHECKPOINTS))
    await rm(join(parent, old), { recursive: true, force: true });
  return folder;
}

/** Takes away what a process that was killed while it saved left behind. */
async function removeUnfinished(parent: string): Promise<void> {
  for (const name of await readdir(parent).catch(() => []))
    if (name.endsWith(UNFINISHED)) await rm(join(parent, name), { recursive: true, force: true });
}

/** The newest whole checkpoint of a run; undefined when there is none. */
export async function latestCheckpoint(parent: string): Promise<string | undefined> {
  const newest = (await listCheckpoints(parent)).at(-1);
  return newest === undefined ? undefined : join(parent, newest);
}

async function listCheckpoints(parent: string): Promise<string[]> {
  const names = await readdir(parent).catch(() => []);
  return names.filter((name) => /^\d+$/.test(name)).sort((a, b) => Number(a) - Number(b));
}

/** What a checkpoint holds. Throws FILE_NOT_FOUND, FILE_CORRUPT, and RUN_INCOMPATIBLE for one of another version. */
export async function readCheckpoint<Rest>(folder: string): Promise<CheckpointContent<Rest>> {
  const advice = "Go on with the version that made it, or start anew from its model.";
  const { optimizer, ...rest } = withoutVersion(await readJson(join(folder, STATE_FILE)), VERSION, folder, advice);
  const kept = optimizer as unknown as Pick<OptimizerState, "kind" | "step">;
  return { rest: rest as Rest, optimizer: { ...kept, moments: await readMoments(folder) } };
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
