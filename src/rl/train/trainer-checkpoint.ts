import type { Agent } from "../agent/agent.js";
import type { EnvSlotState } from "../rollout/env-slot.js";
import { readCheckpoint, writeCheckpoint } from "./checkpoint-folder.js";

/** How far a run has come. */
export interface TrainerState {
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
  readonly state: TrainerState;
  readonly envSlots: readonly EnvSlotState[];
  /** The stream that starts environments. */
  readonly episodeStarts: unknown;
}

/** What is kept of a run besides the trained parameters and the optimiser. */
interface TrainerCheckpoint extends Checkpoint {
  readonly learner: unknown;
}

/**
 * Saves a checkpoint as a folder of its own; the adapter in it opens in PEFT. Throws FILE_WRITE_FAILED; the checkpoints before
 * it stand.
 */
export async function saveCheckpoint(parent: string, agent: Agent, checkpoint: Checkpoint): Promise<string> {
  const learner = await agent.getLearner();
  const { optimizer, state } = await learner.getState();
  const saved: TrainerCheckpoint = { ...checkpoint, learner: state };
  return writeCheckpoint(parent, checkpoint.state.updates, { optimizer, state: saved }, async (folder) =>
    agent.save(folder),
  );
}

/**
 * Puts an agent back to where a checkpoint was taken and gives the rest of it.
 * Throws FILE_NOT_FOUND, FILE_CORRUPT, WEIGHTS_MISMATCH, and RUN_INCOMPATIBLE for a checkpoint of another version.
 */
export async function loadCheckpoint(folder: string, agent: Agent): Promise<Checkpoint> {
  const { optimizer, state: saved } = await readCheckpoint<TrainerCheckpoint>(folder);
  await agent.load(folder);
  const learner = await agent.getLearner();
  await learner.setState({ optimizer, state: saved.learner });
  const { state, envSlots, episodeStarts } = saved;
  return { state, envSlots, episodeStarts };
}
