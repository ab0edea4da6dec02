import type { EnvSlotState, EpisodeSpec } from "./rollout-slot.js";
import type { JobSlot, RolloutJob, RolloutTransport, TrainedWeights } from "./rollout-job.js";
import { settleAll, type CollectOptions, type Rollout, type RolloutSource } from "./rollout-collector.js";

/**
 * Collects trajectories through a transport, in jobs of `slotsPerJob` slots. With one job for all
 * slots, the rollouts equal those of a `RolloutCollector`; with several, they do not depend on the
 * number of workers.
 */
export class JobCollector implements RolloutSource {
  private pastVersion: number | undefined;

  constructor(
    private readonly transport: RolloutTransport,
    /** The slots of the run, which collectors of several versions share. */
    private readonly slots: JobSlot[],
    private readonly slotsPerJob: number,
    /** Version of the published weights that sample. */
    private readonly weightsVersion = 0,
  ) {}

  async collectTurns(minTurns: number, options: Omit<CollectOptions, "signal"> = {}): Promise<Rollout> {
    const rounds = Math.ceil(minTurns / this.slots.length);
    return this.collect((_, numSlots) => ({ turns: rounds * numSlots }), options);
  }

  async collectEpisodes(specs: readonly EpisodeSpec[], options: CollectOptions = {}): Promise<Rollout> {
    const episodesPerJob = Math.ceil(specs.length / Math.ceil(this.slots.length / this.slotsPerJob));
    const episodesOf = (job: number) => specs.slice(job * episodesPerJob, (job + 1) * episodesPerJob);
    return this.collect((job) => ({ episodes: episodesOf(job) }), options);
  }

  /** Makes an earlier version of the policy the past opponent of the jobs from now on. */
  async publishPast(weights: TrainedWeights): Promise<void> {
    await this.transport.publishPast?.(weights);
    this.pastVersion = weights.version;
  }

  getState({ dropEpisodes = false } = {}): readonly EnvSlotState[] {
    return this.slots.map(({ state }) => (dropEpisodes ? { ...state, env: null, episode: null } : state));
  }

  setState(states: readonly EnvSlotState[]): void {
    states.forEach((state, i) => (this.slots[i] = { ...this.slots[i], state }));
  }

  private async collect(
    workOf: (job: number, numSlots: number) => RolloutJob["work"],
    { onProgress }: CollectOptions,
  ): Promise<Rollout> {
    const { slots, slotsPerJob, weightsVersion, transport, pastVersion } = this;
    const past = pastVersion === undefined ? {} : { pastVersion };
    const jobs: RolloutJob[] = [];
    for (let firstSlot = 0; firstSlot < slots.length; firstSlot += slotsPerJob) {
      const jobSlots = slots.slice(firstSlot, firstSlot + slotsPerJob);
      const work = workOf(jobs.length, jobSlots.length);
      if ("turns" in work || work.episodes.length > 0)
        jobs.push({ weightsVersion, ...past, slots: jobSlots, firstSlot, work });
    }
    let numTurns = 0;
    const results = await settleAll(
      jobs.map(async (job) => {
        const result = await transport.run(job);
        numTurns += result.trajectories.reduce((sum, { turns }) => sum + turns.length, 0);
        onProgress?.(numTurns, result.finishedEpisodes);
        return result;
      }),
    );
    results.forEach(({ states }, i) => {
      states.forEach((state, j) => {
        const index = jobs[i].firstSlot + j;
        slots[index] = { ...slots[index], state };
      });
    });
    return {
      trajectories: results.flatMap(({ trajectories }, i) =>
        trajectories.map((trajectory) =>
          trajectory.envSlot === undefined
            ? trajectory
            : { ...trajectory, envSlot: jobs[i].firstSlot + trajectory.envSlot },
        ),
      ),
      finishedEpisodes: results.flatMap(({ finishedEpisodes }) => finishedEpisodes),
    };
  }
}
