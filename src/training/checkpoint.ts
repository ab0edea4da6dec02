import { mkdir, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Agent } from "../agent/agent.js";
import type { LearnerState } from "../algorithms/learner.js";
import { LlamaGymError } from "../errors.js";
import { readJson, SafetensorsFile, writeJson, writeSafetensors } from "../files/index.js";
import type { OptimizerState } from "../optim/index.js";
import type { SeatState } from "../rollout/seat.js";

/** How far a run has come. */
export interface RunProgress {
  readonly updates: number;
  readonly turns: number;
  readonly episodes: number;
  /** Tokens that the policy wrote. */
  readonly tokens: number;
  /** Seconds of rollouts and updates, all sessions together. */
  readonly seconds: number;
  /** Returns of the last episodes, for the moving mean. */
  readonly recentReturns: readonly number[];
}

/** What a run continues from, besides the trained parameters and the optimiser. */
interface SavedState {
  readonly version: number;
  readonly progress: RunProgress;
  readonly learner: unknown;
  readonly optimizer: Pick<OptimizerState, "kind" | "step">;
  readonly seats: readonly SeatState[];
  readonly starts: unknown;
}

export interface Checkpoint {
  readonly progress: RunProgress;
  readonly seats: readonly SeatState[];
  /** The stream that starts environments. */
  readonly starts: unknown;
}

/** The layout of what is saved; another one is refused. */
const VERSION = 1;
const STATE_FILE = "state.json";
const OPTIMIZER_FILE = "optimizer.safetensors";
const KEPT_CHECKPOINTS = 2;
/** Behind the name of a checkpoint that is being written. */
const UNFINISHED = ".partial";

/**
 * Saves a checkpoint as a folder of its own, under a temporary name until it is whole, and deletes all but the last two. The
 * adapter in it opens in PEFT. Throws FILE_WRITE_FAILED; the checkpoints before it stand.
 */
export async function saveCheckpoint(parent: string, agent: Agent, checkpoint: Checkpoint): Promise<string> {
  const learner = await agent.learner();
  const { optimizer, state } = await learner.getState();
  const folder = join(parent, String(checkpoint.progress.updates).padStart(6, "0"));
  const unfinished = folder + UNFINISHED;
  try {
    await removeUnfinished(parent);
    await mkdir(unfinished, { recursive: true });
    await agent.save(unfinished);
    const moments = optimizer.moments.map((data, i) => ({ name: `moment.${i}`, shape: [data.length], data }));
    await writeSafetensors(join(unfinished, OPTIMIZER_FILE), moments);
    const saved: SavedState = {
      version: VERSION,
      ...checkpoint,
      learner: state,
      optimizer: { kind: optimizer.kind, step: optimizer.step },
    };
    await writeJson(join(unfinished, STATE_FILE), saved);
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

/**
 * Puts an agent back to where a checkpoint was taken and gives the rest of it.
 * Throws FILE_NOT_FOUND, FILE_CORRUPT, WEIGHTS_MISMATCH, and RUN_INCOMPATIBLE for a checkpoint of another version.
 */
export async function loadCheckpoint(folder: string, agent: Agent): Promise<Checkpoint> {
  const saved = (await readJson(join(folder, STATE_FILE))) as unknown as SavedState;
  if (saved.version !== VERSION) {
    throw new LlamaGymError(
      "RUN_INCOMPATIBLE",
      `${folder} was written by another version of llamagym (layout ${String(saved.version)}, this one reads ${VERSION}). ` +
        "Go on with the version that wrote it, or start anew from its adapter.",
    );
  }
  await agent.load(folder);
  const learner = await agent.learner();
  await learner.setState({
    optimizer: await readOptimizer(folder, saved),
    state: saved.learner,
  } satisfies LearnerState);
  const { progress, seats, starts } = saved;
  return { progress, seats, starts };
}

async function readOptimizer(folder: string, { optimizer }: SavedState): Promise<OptimizerState> {
  const file = await SafetensorsFile.open(join(folder, OPTIMIZER_FILE));
  try {
    const moments: Float32Array[] = [];
    for (let i = 0; i < file.entries.size; i++) moments.push(await file.readFloat32(`moment.${i}`));
    return { ...optimizer, moments };
  } finally {
    await file.close();
  }
}
