import type { GroupSpec } from "../algorithms/learner.js";
import type { RolloutCollector, EpisodeSpec, Rollout } from "../rollout/rollout-collector.js";
import type { EpisodeSummary, Trajectory } from "../rollout/trajectory.js";

/** What groups are played with. */
export interface CollectGroupsOptions {
  /** Starts the environments of the next group. */
  readonly nextSeed: () => number;
  /** Called after each round with the turns played so far and the episodes that ended in it. */
  readonly onProgress?: (turns: number, finished: readonly EpisodeSummary[]) => void;
}

/**
 * Groups of episodes that start alike, as many as the wish says, and as many again until there are enough turns. In place of groups
 * that teach nothing others are played, as often as the wish allows; all that was played is given.
 */
export async function collectGroups(
  collector: Pick<RolloutCollector, "collectEpisodes">,
  spec: GroupSpec,
  { nextSeed, onProgress = () => {} }: CollectGroupsOptions,
): Promise<Rollout> {
  const groupCollector = new GroupCollector(collector, spec.groupSize, nextSeed, onProgress);
  let informative = 0;
  let target = 0;
  do {
    target += spec.groups;
    informative += countInformative(await groupCollector.collect(spec.groups), spec);
  } while (groupCollector.turns < spec.minTurns);
  for (let resample = 0; resample < spec.maxResamples && informative < target; resample++)
    informative += countInformative(await groupCollector.collect(target - informative), spec);
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
    private readonly nextSeed: () => number,
    private readonly onProgress: Required<CollectGroupsOptions>["onProgress"],
  ) {}

  /** More groups; gives their segments. */
  async collect(count: number): Promise<readonly Trajectory[]> {
    const specs = Array.from({ length: count }, (): EpisodeSpec => ({ group: this.groups++, seed: this.nextSeed() }));
    const turnsBefore = this.turns;
    const { trajectories, finishedEpisodes } = await this.collector.collectEpisodes(
      specs.flatMap((spec) => Array.from({ length: this.groupSize }, () => spec)),
      { onProgress: (turns, finished) => this.onProgress(turnsBefore + turns, finished) },
    );
    this.turns += trajectories.reduce((sum, { turns }) => sum + turns.length, 0);
    this.trajectories.push(...trajectories);
    this.finishedEpisodes.push(...finishedEpisodes);
    return trajectories;
  }
}

/** How many groups teach something; all of them count where it does not matter. */
function countInformative(
  trajectories: readonly Trajectory[],
  { groupSize, maxResamples, hasSignal }: GroupSpec,
): number {
  let count = 0;
  for (let start = 0; start < trajectories.length; start += groupSize)
    if (maxResamples === 0 || hasSignal(trajectories.slice(start, start + groupSize))) count++;
  return count;
}
