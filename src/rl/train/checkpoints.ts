import { fs } from "#platform";
import { LlamaGymError } from "../../core/errors.js";
import {
  readJson,
  removeFolder,
  replaceFolder,
  SafetensorsFile,
  writeJson,
  writeSafetensors,
} from "../../models/files/index.js";
import type { OptimizerState } from "../../engine/optim/index.js";
import type { SavedFrozenStates } from "../../models/graphs/frozen-states.js";
import { checkFormatVersion } from "./check-format-version.js";
import type { ResumedRun, TrainerState, TrainTask } from "./train-task.js";

/** Contents of state.json. */
interface SavedState {
  readonly trainer: TrainerState;
  readonly task: unknown;
  readonly optimizer: Pick<OptimizerState, "kind" | "step">;
}

type CheckpointedTask = Pick<TrainTask<never, never>, "getState" | "setState" | "saveModel">;

const FORMAT_VERSION = 2;
const STATE_FILE = "state.json";
const OPTIMIZER_FILE = "optimizer.safetensors";
const FROZEN_STATES_FILE = "frozen_states.safetensors";
const SAVE_TOTAL_LIMIT = 2;
/** Ends the name of a folder that is still being written; see replaceFolder. */
const PARTIAL_SUFFIX = ".partial";

/**
 * Writes a checkpoint into its own folder, which gets its final name when it is complete, and deletes all but the last two.
 * The trained parameters in it open in PEFT.
 * @throws FILE_WRITE_FAILED; earlier checkpoints remain.
 */
export async function saveCheckpoint(
  dir: string,
  trainer: TrainerState,
  task: CheckpointedTask,
  options: { readonly dropRollout?: boolean } = {},
): Promise<string> {
  const { optimizer, frozenStates, state } = await task.getState(options);
  const folder = fs.join(dir, String(trainer.updates).padStart(6, "0"));
  await removePartialCheckpoints(dir);
  await replaceFolder(folder, async (partialFolder) => {
    await task.saveModel(partialFolder);
    const moments = optimizer.moments.map((data, i) => ({ name: `moment.${i}`, shape: [data.length], data }));
    await writeSafetensors(fs.join(partialFolder, OPTIMIZER_FILE), moments);
    if (frozenStates !== undefined) await writeFrozenStates(fs.join(partialFolder, FROZEN_STATES_FILE), frozenStates);
    const { kind, step } = optimizer;
    const saved: SavedState = { trainer, task: state, optimizer: { kind, step } };
    await writeJson(fs.join(partialFolder, STATE_FILE), { version: FORMAT_VERSION, ...saved });
  });
  for (const name of (await listCheckpoints(dir)).slice(0, -SAVE_TOTAL_LIMIT)) await removeFolder(fs.join(dir, name));
  return folder;
}

/**
 * Restores a task from a checkpoint.
 * @throws FILE_NOT_FOUND, FILE_CORRUPT, WEIGHTS_MISMATCH, and RUN_INCOMPATIBLE for another format version.
 */
export async function restoreCheckpoint(folder: string, task: CheckpointedTask): Promise<ResumedRun> {
  const advice = "Resume it with the version that wrote it, or start a new run from its model.";
  const content = checkFormatVersion(await readJson(fs.join(folder, STATE_FILE)), FORMAT_VERSION, folder, advice);
  const saved = content as unknown as SavedState;
  const optimizer = { ...saved.optimizer, moments: await readMoments(folder) };
  const frozenStates = await readFrozenStates(fs.join(folder, FROZEN_STATES_FILE));
  await task.setState({ optimizer, frozenStates, state: saved.task }, folder);
  return { state: saved.trainer, folder };
}

/** Returns the newest complete checkpoint of a run. */
export async function findLatestCheckpoint(dir: string): Promise<string | undefined> {
  const latest = (await listCheckpoints(dir)).at(-1);
  return latest === undefined ? undefined : fs.join(dir, latest);
}

/** Prevents a new run from mixing its checkpoints with those of another one. @throws INVALID_STATE if there are any. */
export async function checkNoCheckpoints(dir: string | undefined, advice: string): Promise<void> {
  if (dir === undefined || (await findLatestCheckpoint(dir)) === undefined) return;
  throw new LlamaGymError("INVALID_STATE", `${dir} contains the checkpoints of a run. ${advice}`);
}

/** Removes what a process that was killed while saving left behind. */
async function removePartialCheckpoints(dir: string): Promise<void> {
  for (const name of await fs.list(dir).catch(() => []))
    if (name.endsWith(PARTIAL_SUFFIX)) await removeFolder(fs.join(dir, name));
}

async function listCheckpoints(dir: string): Promise<string[]> {
  const names = await fs.list(dir).catch(() => []);
  return names.filter((name) => /^\d+$/.test(name)).sort((a, b) => Number(a) - Number(b));
}

async function readMoments(folder: string): Promise<Float32Array[]> {
  const file = await SafetensorsFile.open(fs.join(folder, OPTIMIZER_FILE));
  try {
    const moments: Float32Array[] = [];
    for (let i = 0; i < file.entries.size; i++) moments.push(await file.readFloat32(`moment.${i}`));
    return moments;
  } finally {
    await file.close();
  }
}

async function writeFrozenStates(path: string, { parents, tokens, states }: SavedFrozenStates): Promise<void> {
  const { length } = parents;
  await writeSafetensors(path, [
    { name: "parents", shape: [length], dtype: "I32", data: parents },
    { name: "tokens", shape: [length], dtype: "I32", data: tokens },
    { name: "states", shape: [length, states.length / length], data: states },
  ]);
}

async function readFrozenStates(path: string): Promise<SavedFrozenStates | undefined> {
  if (!(await fs.exists(path))) return undefined;
  const file = await SafetensorsFile.open(path);
  try {
    const [parents, tokens] = [await file.readFloat32("parents"), await file.readFloat32("tokens")];
    const states = await file.readFloat32("states");
    return { parents: Int32Array.from(parents), tokens: Int32Array.from(tokens), states };
  } finally {
    await file.close();
  }
}
