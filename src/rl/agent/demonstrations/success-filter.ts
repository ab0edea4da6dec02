import { checkSavedState } from "../../algorithms/check-model.js";
import type { Trajectory } from "../../rollout/trajectory.js";
import { toReplayTurn, type ReplayEpisode, type ReplayTurn } from "./replay-buffer.js";

/** The recorded part of an unfinished episode. */
interface PartialEpisode {
  readonly turns: readonly ReplayTurn[];
  readonly return: number;
}

/** JSON state. */
export interface SuccessFilterState {
  /** By environment slot. */
  readonly partialEpisodes: readonly (readonly [number, PartialEpisode])[];
  readonly recent: readonly number[];
}

/** Number of recent episodes whose mean return is the threshold. */
const WINDOW = 100;

/**
 * Selects successful episodes: complete ones whose return exceeds the mean of the last 100. If all
 * returns are equal, none is selected.
 */
export class SuccessFilter {
  private readonly partialEpisodes = new Map<number, PartialEpisode>();
  private recent: readonly number[] = [];

  /**
   * Returns the successful episodes that end in these trajectories. Partial ones are completed by
   * later calls.
   */
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
    checkSavedState(
      recent,
      recent.map(() => 0),
      "The list of recent returns",
    );
    this.recent = recent;
  }

  private mergeTrajectory({ envSlot, startsEpisode = true, turns }: Trajectory): PartialEpisode {
    const earlier = startsEpisode || envSlot === undefined ? undefined : this.partialEpisodes.get(envSlot);
    return {
      // Invalid actions are not imitated, but their rewards count.
      turns: [...(earlier?.turns ?? []), ...turns.flatMap((turn) => (turn.isValid ? [toReplayTurn(turn)] : []))],
      return: turns.reduce((sum, { reward, penalty }) => sum + reward + penalty, earlier?.return ?? 0),
    };
  }
}
