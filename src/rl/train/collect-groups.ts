import type { EpisodeSpec, Matchup } from "../rollout/rollout-slot.js";
import type { GroupSpec } from "../algorithms/learner.js";
import type { RolloutCollector, Rollout } from "../rollout/rollout-collector.js";
import type { EpisodeSummary, Trajectory } from "../rollout/trajectory.js";

export interface CollectGroupsOptions {
  /** Returns the environment seed of the next group. */
  readonly nextSeed: () => number;
  /** Returns who plays in the games of the next group. */
  readonly nextMatchup?: (() => Matchup) | undefined;
  /** Episodes after which no further group is started. Default Infinity. */
  readonly maxEpisodes?: number;
  /** Number of groups that are recorded, the first ones. Default 0. */
  readonly recordedGroups?: number;
  /** Called after each round with the number of turns so far and the episodes that ended in it. */
  readonly onProgress?: (turns: number, finished: readonly EpisodeSummary[]) => void;
}

/**
 * Collects groups of episodes with equal starts until there are at least `minTurns` turns.
 * Resamples groups without a learning signal up to `maxResamples` times (dynamic sampling, DAPO).
 * The result includes all episodes.
 */
export async function collectGroups(
  collector: Pick<RolloutCollector, "collectEpisodes">,
  spec: GroupSpec,
  { nextSeed, nextMatchup, maxEpisodes = Infinity, recordedGroups = 0, onProgress = () => {} }: CollectGroupsOptions,
): Promise<Rollout> {
  const maxGroups = Math.ceil(maxEpisodes / spec.groupSize);
  const groupCollector = new GroupCollector(collector, spec.groupSize, maxGroups, {
    nextSeed,
    nextMatchup,
    onProgress,
    recordedGroups,
  });
  let informative = 0;
  let target = 0;
  do {
    target += spec.groups;
    informative += await countInformative(await groupCollector.collect(spec.groups), spec);
  } while (groupCollector.turns < spec.minTurns && !groupCollector.isFull);
  for (let resample = 0; resample < spec.maxResamples && informative < target && !groupCollector.isFull; resample++)
    informative += await countInformative(await groupCollector.collect(target - informative), spec);
  return groupCollector;
}

class GroupCollector implements Rollout {
  readonly trajectories: Trajectory[] = [];
  readonly finishedEpisodes: EpisodeSummary[] = [];
  turns = 0;
  private groups = 0;

  constructor(
    private readonly collector: Pick<RolloutCollector, "collectEpisodes">,
    private readonly groupSize: number,
    private readonly maxGroups: number,
    private readonly options: Pick<Required<CollectGroupsOptions>, "nextSeed" | "onProgress" | "recordedGroups"> &
      Pick<CollectGroupsOptions, "nextMatchup">,
  ) {}

  get isFull(): boolean {
    return this.groups >= this.maxGroups;
  }

  /** Collects further groups, at most the remaining ones, and returns their trajectories. */
  async collect(count: number): Promise<readonly Trajectory[]> {
    const { nextSeed, nextMatchup, onProgress, recordedGroups } = this.options;
    const length = Math.min(count, this.maxGroups - this.groups);
    const specs = Array.from({ length }, (): EpisodeSpec => {
      const group = this.groups++;
      const matchup = nextMatchup === undefined ? {} : { matchup: nextMatchup() };
      return { group, seed: nextSeed(), ...matchup, ...(group < recordedGroups ? { record: true } : {}) };
    });
    const turnsBefore = this.turns;
    const { trajectories, finishedEpisodes } = await this.collector.collectEpisodes(
      specs.flatMap((spec) => Array.from({ length: this.groupSize }, () => spec)),
      { onProgress: (turns, finished) => onProgress(turnsBefore + turns, finished) },
    );
    this.turns += trajectories.reduce((sum, { turns }) => sum + turns.length, 0);
    this.trajectories.push(...trajectories);
    this.finishedEpisodes.push(...finishedEpisodes);
    return trajectories;
  }
}

/** Counts the starts whose episodes have a learning signal; all count if none are resampled. */
async function countInformative(
  trajectories: readonly Trajectory[],
  { groupSize, maxResamples, hasSignal }: GroupSpec,
): Promise<number> {
  const groups = new Map<number | undefined, Trajectory[]>();
  trajectories.forEach((trajectory, i) => {
    const group = trajectory.group ?? Math.floor(i / groupSize);
    groups.set(group, [...(groups.get(group) ?? []), trajectory]);
  });
  if (maxResamples === 0) return groups.size;
  let count = 0;
  for (const group of groups.values()) if (await hasSignal(group)) count++;
  return count;
}
