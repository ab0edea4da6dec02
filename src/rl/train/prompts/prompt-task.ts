import { LlamaGymError } from "../../../core/errors.js";
import type { LanguageModel } from "../../../generation/index.js";
import { checkSavedState } from "../../algorithms/check-model.js";
import { nameEvaluation } from "../../algorithms/shared/name-evaluation.js";
import type { GroupSpec, Learner, Metrics } from "../../algorithms/learner.js";
import type { Rollout } from "../../rollout/rollout-collector.js";
import { mean } from "../../../core/numbers.js";
import { completionLength, type Turn } from "../../rollout/trajectory.js";
import type { CompletionRow } from "../../tracking/index.js";
import { collectGroups } from "../collect-groups.js";
import { LearnerTask } from "../learner-task.js";
import { recordedGroups, type RolloutMode } from "../record-rollout.js";
import { computeCompletionMetrics, sampleCompletionRows } from "../rollout-metrics.js";
import type { RolloutCounts, TrainerState } from "../train-task.js";
import type { PromptRollout, PromptRolloutState } from "./prompt-rollout.js";

export interface PromptTaskOptions {
  readonly model: LanguageModel;
  readonly learner: Learner;
  readonly promptRollout: PromptRollout;
  /** Completions of evaluations. */
  readonly evalRollout?: PromptRollout;
  /** Completions of each row in an evaluation. */
  readonly evalGenerations?: number;
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
  /** Hash of the rows of the dataset. */
  readonly dataset: string;
}

/** Scored completions of one update. */
export interface PromptBatch {
  readonly trajectories: Rollout["trajectories"];
  /** Statistics of the reward functions. */
  readonly metrics: Metrics;
}

/** State of the prompts in a checkpoint; JSON. */
interface PromptTaskState {
  readonly promptRollout: PromptRolloutState;
  readonly fingerprint: RunFingerprint;
}

/** Training on prompts whose completions are scored by reward functions. */
export class PromptTask extends LearnerTask<PromptBatch, PromptTaskState> {
  /** Before the last rollout. */
  private rolloutState: PromptRolloutState;

  constructor(private readonly options: PromptTaskOptions) {
    super(options.model, options.rollouts, () => options.learner);
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
    return { trajectories, metrics: promptRollout.flushMetrics() };
  }

  /** Scores completions of the evaluation's rows, each time with the same random numbers. */
  async evaluate(): Promise<Metrics | undefined> {
    const { evalRollout, evalGenerations = 1 } = this.options;
    if (evalRollout === undefined) return undefined;
    evalRollout.setState({ prompts: 0, completions: 0 });
    const turns: Turn[] = [];
    await this.model.runIsolated(async () => {
      for (let row = 0; row < evalRollout.rowCount; row++) {
        const specs = Array.from({ length: evalGenerations }, () => ({ seed: row }));
        const { trajectories } = await evalRollout.collectEpisodes(specs);
        turns.push(...trajectories.flatMap((trajectory) => trajectory.turns));
      }
    });
    const rewards = turns.map(({ reward }) => reward).filter((reward) => !Number.isNaN(reward));
    return nameEvaluation({
      reward: mean(rewards),
      ...evalRollout.flushMetrics(),
      ...computeCompletionMetrics(turns),
    });
  }

  count({ trajectories }: PromptBatch): RolloutCounts {
    const turns = trajectories.flatMap((trajectory) => trajectory.turns);
    return {
      turns: turns.length,
      tokens: turns.reduce((sum, turn) => sum + completionLength(turn), 0),
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

  sampleCompletions({ trajectories }: PromptBatch, count: number): readonly CompletionRow[] {
    const rows = sampleCompletionRows(trajectories, count, this.model.tokenizer);
    return rows.map(({ prompt, completion, reward }) => ({ prompt, completion, reward }));
  }

  protected override getRolloutState(dropRollout: boolean): PromptTaskState {
    const { promptRollout, fingerprint } = this.options;
    return { promptRollout: dropRollout ? this.rolloutState : promptRollout.getState(), fingerprint };
  }

  /**
   * @throws RUN_INCOMPATIBLE for a checkpoint with another fingerprint: other settings, or a
   * dataset with other rows.
   */
  protected override checkRolloutState(saved: PromptTaskState, folder: string): void {
    const { promptRollout, fingerprint } = this.options;
    for (const name of Object.keys(fingerprint) as (keyof RunFingerprint)[]) {
      if (saved.fingerprint[name] === fingerprint[name]) continue;
      if (name === "dataset")
        throw new LlamaGymError(
          "RUN_INCOMPATIBLE",
          `The rows of trainDataset have changed since the checkpoint ${folder}, so the run cannot be resumed on them. Restore them, and the tools that their prompts describe, or start a new run.`,
        );
      throw new LlamaGymError(
        "RUN_INCOMPATIBLE",
        `The checkpoint ${folder} has ${name} ${saved.fingerprint[name]}, this run has ${fingerprint[name]}. Use the same ${name} to resume.`,
      );
    }
    checkSavedState(saved.promptRollout, promptRollout.getState(), "The state of the prompts");
  }

  protected override setRolloutState({ promptRollout }: PromptTaskState): void {
    this.options.promptRollout.setState(promptRollout);
  }
}
