import type { Agent } from "../agent/agent.js";
import type { SeatState } from "../rollout/seat.js";
import { readCheckpoint, writeCheckpoint } from "./checkpoint-folder.js";

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

export interface Checkpoint {
  readonly progress: RunProgress;
  readonly seats: readonly SeatState[];
  /** The stream that starts environments. */
  readonly starts: unknown;
}

/** What is kept of a run besides the trained parameters and the optimiser. */
interface SavedState extends Checkpoint {
  readonly learner: unknown;
}

/**
 * Saves a checkpoint as a folder of its own; the adapter in it opens in PEFT. Throws FILE_WRITE_FAILED; the checkpoints before
 * it stand.
 */
export async function saveCheckpoint(parent: string, agent: Agent, checkpoint: Checkpoint): Promise<string> {
  const learner = await agent.learner();
  const { optimizer, state } = await learner.getState();
  const rest: SavedState = { ...checkpoint, learner: state };
  return writeCheckpoint(parent, checkpoint.progress.updates, { optimizer, rest }, async (folder) =>
    agent.save(folder),
  );
}

/**
 * Puts an agent back to where a checkpoint was taken and gives the rest of it.
 * Throws FILE_NOT_FOUND, FILE_CORRUPT, WEIGHTS_MISMATCH, and RUN_INCOMPATIBLE for a checkpoint of another version.
 */
export async function loadCheckpoint(folder: string, agent: Agent): Promise<Checkpoint> {
  const { optimizer, rest } = await readCheckpoint<SavedState>(folder);
  await agent.load(folder);
  const learner = await agent.learner();
  await learner.setState({ optimizer, state: rest.learner });
  const { progress, seats, starts } = rest;
  return { progress, seats, starts };
}
