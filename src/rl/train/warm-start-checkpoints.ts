import type { FolderLock } from "../../core/files/folder-lock.js";
import type { WarmStartState } from "../agent/index.js";
import type { TurnSftLearner } from "../algorithms/sft/turn-sft-learner.js";
import { CheckpointClock, restoreLatestCheckpoint, saveCheckpoint } from "./checkpoints.js";
import { CheckpointedLearner } from "./example-trainer.js";
import { INITIAL_STATE } from "./train-task.js";

export interface WarmStartCheckpointsOptions {
  /** Folder of the warm start's checkpoints. */
  readonly dir: string;
  /** Whether the run is resumed. */
  readonly isResumed: boolean;
  readonly signal: AbortSignal | undefined;
  readonly lock: FolderLock | undefined;
  readonly onWarning: (message: string) => void;
}

/** Saves a warm start once a minute and when it is interrupted, and restores it. */
export class WarmStartCheckpoints implements WarmStartState {
  private readonly started = performance.now();
  private readonly clock = new CheckpointClock();
  private previousSeconds = 0;
  /** Updates of the last checkpoint. */
  private previous = 0;
  /** Whether all updates were made. */
  isComplete = false;

  constructor(private readonly options: WarmStartCheckpointsOptions) {}

  /** Seconds of the warm start so far, also before the run was resumed. */
  get seconds(): number {
    return this.previousSeconds + (performance.now() - this.started) / 1000;
  }

  async restore(learner: TurnSftLearner): Promise<void> {
    const { dir, isResumed, onWarning } = this.options;
    if (!isResumed) return;
    const restored = await restoreLatestCheckpoint(dir, () => new CheckpointedLearner(learner), onWarning);
    this.previousSeconds = restored?.state.seconds ?? 0;
    this.previous = learner.step;
  }

  async save(learner: TurnSftLearner): Promise<void> {
    const { dir, signal, lock } = this.options;
    this.isComplete = learner.step === learner.totalSteps;
    const start = performance.now();
    if (this.isComplete || (signal?.aborted !== true && !this.clock.isDue)) return;
    await lock?.verify();
    const state = { ...INITIAL_STATE, updates: learner.step, seconds: this.seconds };
    await saveCheckpoint(dir, state, new CheckpointedLearner(learner), { previous: this.previous });
    this.previous = learner.step;
    this.clock.restart(start);
  }
}
