import { LlamaGymError } from "../../../core/errors.js";
import type { LanguageModel } from "../../../generation/language-model.js";
import { checkSavedState } from "../../algorithms/check-saved-state.js";
import type { GroupSpec, Learner, LearnerState, Metrics } from "../../algorithms/learner.js";
import type { Rollout } from "../../rollout/rollout-collector.js";
import type { CompletionRow } from "../../tracking/index.js";
import type { RolloutRecord } from "../../tracking/rollouts/chunk.js";
import { collectGroups } from "../collect-groups.js";
import { recordedGroups, recordRollout, type RolloutMode } from "../record-rollout.js";
import { computeCompletionMetrics } from "../rollout-metrics.js";
import type { RolloutCounts, TrainerState, TrainTask } from "../train-task.js";
import type { CompletionSample, PromptRollout, PromptRolloutState } from "./prompt-rollout.js";

export interface PromptTaskOptions {
  readonly model: LanguageModel;
  readonly learner: Learner;
  readonly promptRollout: PromptRollout;
  readonly totalSteps: number;
  /** Which completions are recorded. */
  readonly rollouts: RolloutMode;
  readonly fingerprint: RunFingerprint;
}

/** Settings that a resumed run must share with its checkpoint. */
export interface RunFingerprint {
  readonly seed: number;
  readonly rows: number;
  readonly batchSize: number;
  readonly numGenerations: number;
}

/** Scored completions of one update. */
export interface PromptBatch {
  readonly trajectories: Rollout["trajectories"];
  /** Statistics of the reward functions. */
  readonly metrics: Metrics;
  readonly samples: readonly CompletionSample[];
}

/** State of a checkpoint apart from the optimizer; JSON. */
interface PromptTaskState {
  readonly promptRollout: PromptRolloutState;
  readonly learner: unknown;
  readonly fingerprint: RunFingerprint;
}

/** Training on prompts whose completions are scored by reward functions. */
export class PromptTask implements TrainTask<PromptBatch, unknown> {
  /** Before the last rollout. */
  private rolloutState: PromptRolloutState;

  constructor(private readonly options: PromptTaskOptions) {
    this.rolloutState = options.promptRollout.getState();
  }

  progress({ updates }: TrainerState): number {
    return updates / this.options.totalSteps;
  }

  async collect(): Promise<PromptBatch> {
    const { learner, promptRollout, rollouts } = this.options;
    this.rolloutState = promptRollout.getState();
    const { trajectories } = await collectGroups(promptRollout, learner.rolloutSpec as GroupSpec, {
      nextSeed: () => promptRollout.nextRow(),
      recordedGroups: recordedGroups(rollouts),
    });
    return { trajectories, ...promptRollout.flushRecords() };
  }

  async prepare({ trajectories }: PromptBatch): Promise<unknown> {
    return this.options.learner.prepare(trajectories);
  }

  async update(batch: unknown, progress: number): Promise<Metrics> {
    return this.options.learner.update(batch, { progress });
  }

  count({ trajectories }: PromptBatch): RolloutCounts {
    const turns = trajectories.flatMap((trajectory) => trajectory.turns);
    return {
      turns: turns.length,
      tokens: turns.reduce((sum, turn) => sum + turn.tokens.length, 0),
      returns: turns.map((turn) => turn.reward),
    };
  }

  describe({ trajectories, metrics }: PromptBatch, state: TrainerState): Metrics {
    return {
      ...computeCompletionMetrics(trajectories.flatMap(({ turns }) => turns)),
      ...metrics,
      num_tokens: state.tokens,
      epoch: this.options.promptRollout.epoch,
    };
  }

  sampleCompletions({ samples }: PromptBatch, count: number): readonly CompletionRow[] {
    return samples.slice(0, count).map(({ row: { prompt }, completion, reward }) => ({
      prompt: typeof prompt === "string" ? prompt : JSON.stringify(prompt),
      completion,
      reward,
    }));
  }

  async recordRollout({ trajectories }: PromptBatch, batch: unknown, step: number): Promise<RolloutRecord | undefined> {
    const { learner, model, rollouts: mode } = this.options;
    return recordRollout(trajectories, { step, mode, tokenizer: model.tokenizer, learner, batch });
  }

  async getState({ dropRollout = false } = {}): Promise<LearnerState> {
    const { learner, fingerprint } = this.options;
    const { state, ...tensors } = await learner.getState();
    const promptRollout = dropRollout ? this.rolloutState : this.options.promptRollout.getState();
    return { ...tensors, state: { promptRollout, learner: state, fingerprint } satisfies PromptTaskState };
  }

  async saveModel(folder: string): Promise<void> {
    await this.options.model.savePretrained(folder);
  }

  /** @throws RUN_INCOMPATIBLE for a checkpoint with another fingerprint. */
  async setState({ state, ...tensors }: LearnerState, folder: string): Promise<void> {
    const { model, learner, promptRollout, fingerprint } = this.options;
    const saved = state as PromptTaskState;
    for (const name of Object.keys(fingerprint) as (keyof RunFingerprint)[]) {
      if (saved.fingerprint[name] === fingerprint[name]) continue;
      throw new LlamaGymError(
        "RUN_INCOMPATIBLE",
        `The checkpoint ${folder} has ${name} ${saved.fingerprint[name]}, this run has ${fingerprint[name]}. Use the same ${name} to resume.`,
      );
    }
    checkSavedState(saved.promptRollout, promptRollout.getState(), "The state of the prompts");
    await model.loadTrainedValues(folder);
    await learner.setState({ ...tensors, state: saved.learner });
    promptRollout.setState(saved.promptRollout);
  }
}
