import type { LanguageModel } from "../../generation/index.js";
import { checkSavedState, type Learner, type Metrics } from "../../rl/algorithms/index.js";
import type { Trajectory } from "../../rl/rollout/index.js";
import type { CompletionRow } from "../../rl/tracking/index.js";
import {
  collectGroups,
  LearnerTask,
  recordedGroups,
  SAMPLED_ENV_SLOTS,
  type RolloutMode,
  countRollout,
  describeFirstSessions,
  describeRollout,
  sampleCompletionRows,
  type RolloutCounts,
  type TrainerState,
} from "../../rl/train/index.js";
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
  /** Receives what will keep the run from learning, after the first rollout. */
  readonly onWarning: (message: string) => void;
}

/** State of the sessions in a checkpoint; JSON. */
interface GatewayTaskState {
  readonly nextTask: number;
  readonly sessions: number;
  readonly updates: number;
}

/** Training on the sessions of a gateway. */
export class GatewayTask extends LearnerTask<SessionRollout, GatewayTaskState> {
  /** Number of updates so far. */
  updates = 0;
  private nextTask = 0;
  /** Before the last rollout. */
  private start = { nextTask: 0, sessions: 0 };

  constructor(private readonly options: GatewayTaskOptions) {
    super(options.model, options.rollouts, () => options.learner);
  }

  progress(state: TrainerState): number {
    return this.options.progress(state);
  }

  async collect(state: TrainerState, onProgress: (current: TrainerState) => void): Promise<SessionRollout> {
    const rollout = await this.collectSessions(state, onProgress);
    if (state.updates === 0) {
      const { tokenizer } = this.options.model;
      for (const problem of describeFirstSessions(rollout, (prompt) => tokenizer.decode(prompt)))
        this.options.onWarning(problem);
    }
    return rollout;
  }

  private async collectSessions(
    state: TrainerState,
    onProgress: (current: TrainerState) => void,
  ): Promise<SessionRollout> {
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

  override async prepare(rollout: SessionRollout): Promise<unknown> {
    await this.options.gate.close();
    return super.prepare(rollout);
  }

  override async update(batch: unknown, progress: number): Promise<Metrics> {
    try {
      return await super.update(batch, progress);
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
    return sampleCompletionRows(rollout.trajectories, count, this.model.tokenizer);
  }

  protected override selectRecorded(trajectories: readonly Trajectory[]): readonly Trajectory[] {
    const isSampled = ({ group }: Trajectory, i: number) =>
      group === undefined ? i < SAMPLED_ENV_SLOTS : group < recordedGroups(this.rolloutMode);
    return this.rolloutMode === "samples" ? trajectories.filter(isSampled) : trajectories;
  }

  protected override getRolloutState(dropRollout: boolean): GatewayTaskState {
    const { nextTask, updates } = this;
    return { ...(dropRollout ? this.start : { nextTask, sessions: this.options.store.count }), updates };
  }

  protected override checkRolloutState(state: GatewayTaskState): void {
    checkSavedState(state, { nextTask: 0, sessions: 0, updates: 0 }, "The state of the gateway");
  }

  protected override setRolloutState({ nextTask, sessions, updates }: GatewayTaskState): void {
    this.nextTask = nextTask;
    this.updates = updates;
    this.options.store.count = sessions;
  }

  async close(): Promise<void> {
    this.options.gate.open();
  }
}
