import type { LanguageModel } from "../../generation/language-model.js";
import { checkSavedState } from "../../rl/algorithms/check-saved-state.js";
import type { Learner, LearnerState, Metrics } from "../../rl/algorithms/learner.js";
import type { Trajectory } from "../../rl/rollout/trajectory.js";
import type { CompletionRow } from "../../rl/tracking/index.js";
import type { RolloutRecord } from "../../rl/tracking/rollouts/chunk.js";
import { collectGroups } from "../../rl/train/collect-groups.js";
import { recordedGroups, recordRollout, SAMPLED_ENV_SLOTS, type RolloutMode } from "../../rl/train/record-rollout.js";
import { countRollout, describeRollout, sampleCompletionRows } from "../../rl/train/rollout-metrics.js";
import type { RolloutCounts, TrainerState, TrainTask } from "../../rl/train/train-task.js";
import type { SessionRecord } from "./session.js";
import type { SessionRollout, SessionSource } from "./session-source.js";
import type { SessionStore } from "./session-store.js";
import type { UpdateGate } from "./update-gate.js";

export interface GatewayTaskOptions {
  readonly model: LanguageModel;
  readonly learner: Learner;
  readonly source: SessionSource;
  readonly store: SessionStore;
  readonly gate: UpdateGate;
  /** Sessions collected at a time by algorithms that count turns. */
  readonly numSessions: number;
  readonly episodes: number | undefined;
  /** Which sessions are recorded. */
  readonly rollouts: RolloutMode;
  readonly progress: (state: TrainerState) => number;
}

/** State of a checkpoint apart from the optimizer; JSON. */
interface GatewayTaskState {
  readonly nextTask: number;
  readonly sessions: number;
  readonly updates: number;
  readonly learner: unknown;
}

/** Training on the sessions of a gateway. */
export class GatewayTask implements TrainTask<SessionRollout, unknown> {
  /** Number of updates so far. */
  updates = 0;
  private nextTask = 0;
  /** Before the last rollout. */
  private start = { nextTask: 0, sessions: 0 };

  constructor(private readonly options: GatewayTaskOptions) {}

  progress(state: TrainerState): number {
    return this.options.progress(state);
  }

  async collect(state: TrainerState, onProgress: (current: TrainerState) => void): Promise<SessionRollout> {
    const { learner, source, episodes: maxEpisodes = Infinity, numSessions } = this.options;
    const { rolloutSpec } = learner;
    this.start = { nextTask: this.nextTask, sessions: this.options.store.count };
    const records: SessionRecord[] = [];
    let { episodes } = state;
    const report = (turns: number, finished: readonly unknown[]) => {
      episodes += finished.length;
      onProgress({ ...state, turns: state.turns + turns, episodes });
    };
    if (rolloutSpec.kind === "groups") {
      const recording: Pick<SessionSource, "collectEpisodes"> = {
        collectEpisodes: async (specs, options) => {
          const rollout = await source.collectEpisodes(specs, options);
          records.push(...rollout.records);
          return rollout;
        },
      };
      const rollout = await collectGroups(recording, rolloutSpec, {
        nextSeed: () => this.nextTask++,
        maxEpisodes: maxEpisodes - state.episodes,
        onProgress: report,
      });
      return { ...rollout, records };
    }
    let turns = 0;
    while (turns < rolloutSpec.turns) {
      const specs = Array.from({ length: numSessions }, () => ({ seed: this.nextTask++ }));
      const before = turns;
      const rollout = await source.collectEpisodes(specs, {
        onProgress: (collected, finished) => report(before + collected, finished),
      });
      records.push(...rollout.records);
      turns += rollout.records.reduce((sum, { summary }) => sum + summary.turns, 0);
    }
    return {
      records,
      trajectories: records.map(({ trajectory }) => trajectory),
      finishedEpisodes: records.map(({ summary }) => summary),
    };
  }

  async prepare({ trajectories }: SessionRollout): Promise<unknown> {
    await this.options.gate.close();
    return this.options.learner.prepare(trajectories);
  }

  async update(batch: unknown, progress: number): Promise<Metrics> {
    try {
      return await this.options.learner.update(batch, { progress });
    } finally {
      this.updates++;
      this.options.gate.open();
    }
  }

  count(rollout: SessionRollout): RolloutCounts {
    return countRollout(rollout);
  }

  describe(rollout: SessionRollout, state: TrainerState, seconds: number): Metrics {
    const { records } = rollout;
    const staleness = records.flatMap(({ updatesAtTurns }) => updatesAtTurns.map((at) => this.updates - 1 - at));
    return {
      ...describeRollout(rollout, state, seconds),
      "gateway/segments_mean": records.reduce((sum, { segments }) => sum + segments, 0) / records.length,
      "gateway/staleness_mean": staleness.reduce((sum, updates) => sum + updates, 0) / staleness.length,
      "gateway/staleness_max": staleness.reduce((max, updates) => Math.max(max, updates), 0),
      "gateway/empty_sessions": this.options.store.emptySessions,
      "gateway/dropped_sessions": this.options.source.droppedSessions,
    };
  }

  sampleCompletions(rollout: SessionRollout, count: number): readonly CompletionRow[] {
    return sampleCompletionRows(rollout, count, this.options.model.tokenizer);
  }

  async recordRollout(
    { trajectories }: SessionRollout,
    batch: unknown,
    step: number,
  ): Promise<RolloutRecord | undefined> {
    const { learner, model, rollouts: mode } = this.options;
    const isSampled = ({ group }: Trajectory, i: number) =>
      group === undefined ? i < SAMPLED_ENV_SLOTS : group < recordedGroups(mode);
    const recorded = mode === "samples" ? trajectories.filter(isSampled) : trajectories;
    return recordRollout(recorded, { step, mode, tokenizer: model.tokenizer, learner, batch });
  }

  async getState({ dropRollout = false } = {}): Promise<LearnerState> {
    const { learner, store } = this.options;
    const { state, ...tensors } = await learner.getState();
    const { nextTask, updates } = this;
    const position = dropRollout ? this.start : { nextTask, sessions: store.count };
    return { ...tensors, state: { ...position, updates, learner: state } satisfies GatewayTaskState };
  }

  async saveModel(folder: string): Promise<void> {
    await this.options.model.savePretrained(folder);
  }

  async setState({ state, ...tensors }: LearnerState, folder: string): Promise<void> {
    const { model, learner, store } = this.options;
    const { nextTask, sessions, updates, learner: learnerState } = state as GatewayTaskState;
    checkSavedState(
      { nextTask, sessions, updates },
      { nextTask: 0, sessions: 0, updates: 0 },
      "The state of the gateway",
    );
    await model.loadTrainedValues(folder);
    await learner.setState({ ...tensors, state: learnerState });
    this.nextTask = nextTask;
    this.updates = updates;
    store.count = sessions;
  }

  async close(): Promise<void> {
    this.options.gate.open();
  }
}
