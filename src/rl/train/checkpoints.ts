import { fs } from "#platform";
import { z } from "zod";
import { errorMessage, LlamaGymError } from "../../core/errors.js";
import { describeUnsavable } from "../../core/describe-unsavable.js";
import { isAllFinite } from "../../core/numbers.js";
import type { MaybePromise } from "../../core/maybe-promise.js";
import { describeIssue } from "../../core/schema-issue.js";
import { SafetensorsFile, writeSafetensors } from "../../models/files/index.js";
import { addAllChecksums, CHECKSUMS_NAME, verifyAllChecksums } from "../../core/files/checksums.js";
import { checkSavable, readJson, writeJson } from "../../core/files/json-file.js";
import { removeFolder } from "../../core/files/remove-folder.js";
import { replaceFolder } from "../../core/files/write-file-atomic.js";
import type { SavedFrozenStates } from "../../models/graphs/index.js";
import { checkFormatVersion } from "./check-format-version.js";
import type { LearnerState } from "../algorithms/learner.js";
import type { ResumedRun, TrainerState, TrainTask } from "./train-task.js";

const count = z.int().min(0);

/** Contents of state.json; the task checks its own part. */
const savedState = z.object({
  trainer: z.object({
    updates: count,
    turns: count,
    episodes: count,
    tokens: count,
    seconds: z.number().min(0),
    recentReturns: z.array(z.number()),
    evaluations: z.object({ best: z.number().nullable(), sinceBest: count }).optional(),
  }),
  task: z.unknown(),
  optimizer: z.object({ kind: z.enum(["adamw", "sgd"]), step: count }),
});
type SavedState = z.infer<typeof savedState>;

/** A checkpoint read from its folder. */
interface ReadCheckpoint {
  readonly trainer: TrainerState;
  readonly state: LearnerState;
}

type CheckpointedTask = Pick<TrainTask<never, never>, "getState" | "setState" | "saveModel">;

const FORMAT_VERSION = 3;
const STATE_FILE = "state.json";
const OPTIMIZER_FILE = "optimizer.safetensors";
const REFERENCE_FILE = "reference.safetensors";
const FROZEN_STATES_FILE = "frozen_states.safetensors";
const SAVE_TOTAL_LIMIT = 2;
/** Milliseconds after which a checkpoint is due; an update of a pretrained model takes minutes. */
const SAVE_INTERVAL = 60_000;
/** Least time between checkpoints, in units of the time that one takes. */
const INTERVAL_PER_SAVE = 20;
/** Ends the name of a folder that is still being written; see replaceFolder. */
const PARTIAL_SUFFIX = ".partial";

interface SaveCheckpointOptions {
  /** As in `TrainTask.getState`. */
  readonly dropRollout?: boolean;
  /** Updates of the checkpoint that the run resumed from or wrote last. Default 0. */
  readonly previous?: number;
}

/**
 * Writes a checkpoint into its own folder, which gets its final name when it is complete, and
 * deletes all but the last two and those that the run did not resume from because they are damaged.
 * The trained parameters in it open in PEFT.
 * @throws FILE_WRITE_FAILED, TRAINING_DIVERGED for parameters or moments that are not finite,
 * INVALID_STATE for other numbers that are not; earlier checkpoints remain.
 */
export async function saveCheckpoint(
  dir: string,
  trainer: TrainerState,
  task: CheckpointedTask,
  { previous = 0, ...options }: SaveCheckpointOptions = {},
): Promise<string> {
  const { optimizer, frozenStates, reference, state } = await task.getState(options);
  const folder = fs.join(dir, String(trainer.updates).padStart(6, "0"));
  const { kind, step } = optimizer;
  const saved: SavedState = {
    trainer: { ...trainer, recentReturns: [...trainer.recentReturns] },
    task: state,
    optimizer: { kind, step },
  };
  checkSavable(folder, saved);
  if (!optimizer.moments.every(isAllFinite))
    throw new LlamaGymError(
      "TRAINING_DIVERGED",
      `The checkpoint ${folder} was not written: the optimizer's moments contain NaN or infinite values. Lower the learning rate.`,
    );
  await removePartialCheckpoints(dir);
  await replaceFolder(folder, async (partialFolder) => {
    await task.saveModel(partialFolder);
    const moments = optimizer.moments.map((data, i) => ({ name: `moment.${i}`, shape: [data.length], data }));
    await writeSafetensors(fs.join(partialFolder, OPTIMIZER_FILE), moments);
    if (frozenStates !== undefined) await writeFrozenStates(fs.join(partialFolder, FROZEN_STATES_FILE), frozenStates);
    if (reference !== undefined)
      await writeSafetensors(fs.join(partialFolder, REFERENCE_FILE), [
        { name: "values", shape: [reference.length], data: reference },
      ]);
    await writeJson(fs.join(partialFolder, STATE_FILE), { version: FORMAT_VERSION, ...saved });
    await addAllChecksums(partialFolder);
  });
  const intact = (await listCheckpoints(dir)).filter(
    (name) => Number(name) <= previous || name === fs.basename(folder),
  );
  const kept = intact.slice(-SAVE_TOTAL_LIMIT);
  for (const name of await listCheckpoints(dir)) if (!kept.includes(name)) await removeFolder(fs.join(dir, name));
  return folder;
}

/**
 * Restores a task from the newest checkpoint whose files are as they were written and whose state
 * can be restored; a warning names each damaged one. Returns undefined if there are no checkpoints.
 * @throws FILE_CORRUPT if all checkpoints are damaged, WEIGHTS_MISMATCH, RUN_INCOMPATIBLE for
 * another format version.
 */
export async function restoreLatestCheckpoint(
  dir: string | undefined,
  openTask: () => MaybePromise<CheckpointedTask>,
  onWarning: (message: string) => void,
): Promise<ResumedRun | undefined> {
  const names = dir === undefined ? [] : await listCheckpoints(dir);
  let damage: unknown;
  let task: CheckpointedTask | undefined;
  for (const name of names.reverse()) {
    const folder = fs.join(dir!, name);
    const skip = (error: unknown) => {
      damage ??= error;
      onWarning(`The checkpoint ${folder} is not used: ${errorMessage(error)}`);
    };
    let checkpoint: ReadCheckpoint;
    try {
      checkpoint = await readCheckpoint(folder);
    } catch (error) {
      if (!isDamage(error)) throw error;
      skip(error);
      continue;
    }
    task ??= await openTask();
    try {
      await task.setState(checkpoint.state, folder);
    } catch (error) {
      if (!isInvalidState(error)) throw error;
      skip(error);
      continue;
    }
    if (damage !== undefined) onWarning(`The run resumes from the earlier checkpoint ${folder}.`);
    return { state: checkpoint.trainer, folder };
  }
  if (damage === undefined) return undefined;
  throw new LlamaGymError(
    "FILE_CORRUPT",
    `No checkpoint in ${dir} can be resumed. The newest: ${errorMessage(damage)} If there is no copy, start a new run in another folder.`,
    { cause: damage },
  );
}

const isDamage = (error: unknown): boolean =>
  error instanceof LlamaGymError && ["FILE_CORRUPT", "FILE_NOT_FOUND", "FORMAT_UNSUPPORTED"].includes(error.code);

/** Whether a task found values in its saved state that it does not write. */
const isInvalidState = (error: unknown): boolean =>
  error instanceof LlamaGymError && ["FILE_CORRUPT", "INVALID_ARGUMENT"].includes(error.code);

/**
 * Reads and checks a checkpoint, except for its trained parameters, whose numbers the task checks.
 */
async function readCheckpoint(folder: string): Promise<ReadCheckpoint> {
  const path = fs.join(folder, STATE_FILE);
  const hasChecksums = await fs.exists(fs.join(folder, CHECKSUMS_NAME));
  if (hasChecksums) await verifyAllChecksums(folder);
  const advice = "Resume it with the version that wrote it, or start a new run from its model.";
  const content = checkFormatVersion(await readJson(path), FORMAT_VERSION, folder, advice);
  // Earlier versions have none, and are named by the check before.
  if (!hasChecksums) await verifyAllChecksums(folder);
  const { data, error } = savedState.safeParse(content);
  if (error !== undefined) throw corruptStateError(path, error);
  // JSON has numbers that are read as Infinity, such as 1e999.
  const problem = describeUnsavable(content);
  if (problem !== undefined) throw new LlamaGymError("FILE_CORRUPT", `${path} is damaged: ${problem}.`);
  const optimizer = { ...data.optimizer, moments: await readMoments(folder) };
  const frozenStates = await readFrozenStates(fs.join(folder, FROZEN_STATES_FILE));
  const reference = await readReference(fs.join(folder, REFERENCE_FILE));
  return { trainer: data.trainer, state: { optimizer, frozenStates, reference, state: data.task } };
}

const corruptStateError = (path: string, error: z.ZodError): LlamaGymError =>
  new LlamaGymError("FILE_CORRUPT", `${path} is damaged: ${describeIssue(error.issues)}.`);

/** Says when a checkpoint is due by time, so that a run that is killed loses about a minute. */
export class CheckpointClock {
  private next = performance.now() + SAVE_INTERVAL;

  get isDue(): boolean {
    return performance.now() >= this.next;
  }

  /** Starts the time to the next checkpoint; `start` is when the last one was begun. */
  restart(start: number): void {
    const end = performance.now();
    this.next = end + Math.max(SAVE_INTERVAL, INTERVAL_PER_SAVE * (end - start));
  }
}

/** Returns the newest complete checkpoint of a run. */
export async function findLatestCheckpoint(dir: string): Promise<string | undefined> {
  const latest = (await listCheckpoints(dir)).at(-1);
  return latest === undefined ? undefined : fs.join(dir, latest);
}

/**
 * Prevents a new run from mixing its checkpoints with those of another one. @throws INVALID_STATE
 * if there are any.
 */
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
    if (moments.every(isAllFinite)) return moments;
    throw new LlamaGymError("FILE_CORRUPT", `${file.path} contains NaN or infinite values: the training diverged.`);
  } finally {
    await file.close();
  }
}

async function readReference(path: string): Promise<Float32Array | undefined> {
  if (!(await fs.exists(path))) return undefined;
  const file = await SafetensorsFile.open(path);
  try {
    return await file.readFloat32("values");
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
