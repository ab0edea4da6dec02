import type { LanguageModel } from "../../generation/index.js";
import type { MaybePromise } from "../../core/maybe-promise.js";
import type { Learner, LearnerState, Metrics } from "../algorithms/learner.js";
import type { Trajectory } from "../rollout/trajectory.js";
import type { RolloutRecord } from "../tracking/rollouts/chunk.js";
import { recordRollout, type RolloutMode } from "./record-rollout.js";
import type { RolloutCounts, TrainerState, TrainTask } from "./train-task.js";

/**
 * Training of a model by a learner, whatever collects the trajectories: updates, recordings and
 * checkpoints. `State` is what a checkpoint stores of the collection, as JSON.
 */
export abstract class LearnerTask<
  Rollout extends { readonly trajectories: readonly Trajectory[] },
  State extends object,
> implements TrainTask<Rollout, unknown> {
  constructor(
    protected readonly model: LanguageModel,
    /** Which episodes are recorded. */
    protected readonly rolloutMode: RolloutMode,
    protected readonly getLearner: () => MaybePromise<Learner>,
  ) {}

  abstract progress(state: TrainerState): number;
  abstract collect(state: TrainerState, onProgress: (current: TrainerState) => void): Promise<Rollout>;
  abstract count(rollout: Rollout): RolloutCounts;
  abstract describe(rollout: Rollout, state: TrainerState, seconds: number): Metrics;

  /** Returns the state of the collection; with `dropRollout`, that before the last rollout. */
  protected abstract getRolloutState(dropRollout: boolean): State;

  /**
   * Checks a saved state of the collection, before anything is restored. `folder` is its
   * checkpoint, for messages.
   */
  protected abstract checkRolloutState(state: State, folder: string): void;

  protected abstract setRolloutState(state: State): void;

  async prepare({ trajectories }: Rollout): Promise<unknown> {
    return (await this.getLearner()).prepare(trajectories);
  }

  async update(batch: unknown, progress: number): Promise<Metrics> {
    const metrics = await (await this.getLearner()).update(batch, { progress });
    return { ...metrics, ...this.model.policy.metrics };
  }

  async recordRollout({ trajectories }: Rollout, batch: unknown, step: number): Promise<RolloutRecord | undefined> {
    const { model, rolloutMode: mode } = this;
    const options = { step, mode, tokenizer: model.tokenizer, learner: await this.getLearner(), batch };
    return recordRollout(this.selectRecorded(trajectories), options);
  }

  async getState({ dropRollout = false } = {}): Promise<LearnerState> {
    const { state: learner, ...tensors } = await (await this.getLearner()).getState();
    return { ...tensors, state: { ...this.getRolloutState(dropRollout), learner } };
  }

  async setState({ state, ...tensors }: LearnerState, folder: string): Promise<void> {
    const { learner, ...rollout } = state as State & { readonly learner: unknown };
    this.checkRolloutState(rollout as State, folder);
    await this.loadModel(folder, rollout as State);
    await (await this.getLearner()).setState({ ...tensors, state: learner });
    this.setRolloutState(rollout as State);
  }

  async saveModel(folder: string): Promise<void> {
    await this.model.savePretrained(folder);
  }

  protected async loadModel(folder: string, _state: State): Promise<void> {
    await this.model.loadTrainedValues(folder);
  }

  /** Returns the trajectories to record. */
  protected selectRecorded(trajectories: readonly Trajectory[]): readonly Trajectory[] {
    return trajectories;
  }
}
