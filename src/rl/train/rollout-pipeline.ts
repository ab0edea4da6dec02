import type { EnvSlotState } from "../rollout/rollout-slot.js";
import type { RandomState, RandomStream } from "../../core/random/random-stream.js";
import type { CausalLM } from "../../models/index.js";
import type { JobSlot, RolloutTransport } from "../rollout/rollout-job.js";
import { JobCollector } from "../rollout/job-collector.js";
import type { Rollout, RolloutSource } from "../rollout/rollout-collector.js";
import { LlamaGymError } from "../../core/errors.js";
import type { LeagueState, Snapshot } from "./league.js";
import type { TrainerState } from "./train-task.js";

/** What the next rollout depends on, apart from the weights. */
export interface RolloutState {
  readonly envSlots: readonly EnvSlotState[];
  readonly episodeStarts: RandomState;
  /** Only with self-play. */
  readonly league?: LeagueState;
}

export interface RolloutPipelineOptions {
  readonly slots: JobSlot[];
  readonly slotsPerJob: number;
  readonly episodeStarts: RandomStream;
  readonly transport: RolloutTransport;
  readonly model: CausalLM;
  /** Number of rollouts that are collected ahead of the updates. */
  readonly maxStaleness: number;
  readonly collect: (
    source: RolloutSource,
    state: TrainerState,
    onProgress: (current: TrainerState) => void,
    snapshots: readonly Snapshot[],
  ) => Promise<Rollout>;
  /**
   * Returns the past opponents of a rollout that starts now; timing must not decide which ones it
   * has.
   */
  readonly snapshots?: () => readonly Snapshot[];
  /** Returns the totals after a rollout. */
  readonly advance: (state: TrainerState, rollout: Rollout) => TrainerState;
  /** Fraction of the run that is complete. */
  readonly progress: (state: TrainerState) => number;
}

/** A rollout and what follows from it. */
interface CollectedRollout {
  readonly rollout: Rollout;
  /** Totals and state after the rollout. */
  readonly next: TrainerState;
  readonly state: RolloutState;
  /** Updates behind the weights that sampled it. */
  readonly version: number;
}

/**
 * Collects rollouts on workers, up to `maxStaleness` of them while earlier ones are trained.
 * Rollout n is sampled with the weights after update n - maxStaleness, whichever worker is fast, so
 * that a seed reproduces a run.
 */
export class RolloutPipeline {
  private readonly ahead: Promise<CollectedRollout>[] = [];
  private last: CollectedRollout | undefined;
  private publishedParameters: number | undefined;
  private publishedVersion = 0;
  private onProgress: (current: TrainerState) => void = () => {};

  constructor(private readonly options: RolloutPipelineOptions) {}

  /** State after the last rollout that was returned; undefined before. */
  get state(): RolloutState | undefined {
    return this.last?.state;
  }

  /** Returns the next rollout, and starts later ones. Throws what the transport throws. */
  async collect(state: TrainerState, onProgress: (current: TrainerState) => void): Promise<Rollout> {
    const { updates } = state;
    this.onProgress = onProgress;
    await this.publish(updates);
    if (this.ahead.length === 0) this.push(Promise.resolve(state), updates);
    while (this.ahead.length <= this.options.maxStaleness)
      this.push(
        this.ahead.at(-1)!.then(({ next }) => next),
        updates,
      );
    this.last = await this.ahead.shift()!;
    const { rollout, version } = this.last;
    const staleness = updates - version;
    if (staleness === 0) return rollout;
    return { ...rollout, trajectories: rollout.trajectories.map((trajectory) => ({ ...trajectory, staleness })) };
  }

  /** Publishes the trained values unless they are unchanged. */
  private async publish(version: number): Promise<void> {
    const { model, transport } = this.options;
    if (this.publishedParameters === model.parametersVersion) return;
    const { data } = await model.runtime.read(model.parameters.values);
    await transport.publish({ version, values: data as Float32Array });
    this.publishedParameters = model.parametersVersion;
    this.publishedVersion = version;
  }

  private push(previous: Promise<TrainerState>, version: number): void {
    const rollout = this.start(previous, version, this.publishedVersion, this.options.snapshots?.() ?? []);
    // A failure is thrown by the update that awaits the rollout.
    rollout.catch(() => {});
    this.ahead.push(rollout);
  }

  private async start(
    previous: Promise<TrainerState>,
    version: number,
    weightsVersion: number,
    snapshots: readonly Snapshot[],
  ): Promise<CollectedRollout> {
    const { collect, advance, progress, slots, slotsPerJob, transport, episodeStarts } = this.options;
    const before = await previous;
    if (progress(before) >= 1) throw new LlamaGymError("INVALID_STATE", "The run is complete.");
    const source = new JobCollector(transport, slots, slotsPerJob, weightsVersion);
    const rollout = await collect(source, before, (current) => this.onProgress(current), snapshots);
    const state = { envSlots: source.getState(), episodeStarts: episodeStarts.getState() };
    return { rollout, next: advance(before, rollout), state, version };
  }
}
