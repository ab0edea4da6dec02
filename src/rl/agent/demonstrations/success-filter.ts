import type { Trajectory, Turn } from "../../rollout/trajectory.js";
import type { ReplayEpisode, ReplayTurn } from "./replay-buffer.js";

/** An episode of which not all has been played. */
interface PartialEpisode {
  readonly turns: readonly ReplayTurn[];
  readonly return: number;
}

/** JSON. */
export interface SuccessFilterState {
  /** By the number of their seat. */
  readonly partialEpisodes: readonly (readonly [number, PartialEpisode])[];
  readonly recent: readonly number[];
}

/** Episodes that an episode is compared with. */
const WINDOW = 100;

/**
 * Finds the successes among what was played: whole episodes with more return than the mean of the last 100. Where all episodes
 * bring the same there is none, so that nothing is imitated that is no better than the rest.
 */
export class SuccessFilter {
  private readonly partialEpisodes = new Map<number, PartialEpisode>();
  private recent: readonly number[] = [];

  /** The successes among the episodes that ended in these segments; of others the beginning is kept until they end. */
  filter(trajectories: readonly Trajectory[]): ReplayEpisode[] {
    const ended: PartialEpisode[] = [];
    for (const trajectory of trajectories) {
      const episode = this.mergeTrajectory(trajectory);
      const { envSlot } = trajectory;
      if (trajectory.end !== "partial") {
        ended.push(episode);
        if (envSlot !== undefined) this.partialEpisodes.delete(envSlot);
      } else if (envSlot !== undefined) {
        this.partialEpisodes.set(envSlot, episode);
      }
    }
    const returns = ended.map((episode) => episode.return);
    this.recent = [...this.recent, ...returns].slice(-Math.max(WINDOW, returns.length));
    const mean = this.recent.reduce((sum, value) => sum + value, 0) / this.recent.length;
    this.recent = this.recent.slice(-WINDOW);
    return ended.filter((episode) => episode.return > mean);
  }

  getState(): SuccessFilterState {
    return { partialEpisodes: [...this.partialEpisodes], recent: this.recent };
  }

  setState({ partialEpisodes, recent }: SuccessFilterState): void {
    this.partialEpisodes.clear();
    for (const [envSlot, episode] of partialEpisodes) this.partialEpisodes.set(envSlot, episode);
    this.recent = recent;
  }

  private mergeTrajectory({ envSlot, startsEpisode = true, turns }: Trajectory): PartialEpisode {
    const earlier = startsEpisode || envSlot === undefined ? undefined : this.partialEpisodes.get(envSlot);
    return {
      // A reply that meant no action is nothing to imitate; its reward counts all the same.
      turns: [...(earlier?.turns ?? []), ...turns.filter(({ isValid }) => isValid).map(toReplayTurn)],
      return: turns.reduce((sum, { reward, penalty }) => sum + reward + penalty, earlier?.return ?? 0),
    };
  }
}

function toReplayTurn({ prompt, tokens, text }: Turn): ReplayTurn {
  return { prompt, tokens, text };
}
