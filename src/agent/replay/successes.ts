import type { Segment, Turn } from "../../rollout/turn.js";
import type { ReplayEpisode, ReplayTurn } from "./buffer.js";

/** An episode of which not all has been played. */
interface OpenEpisode {
  readonly turns: readonly ReplayTurn[];
  readonly return: number;
}

/** JSON. */
export interface SuccessState {
  /** By the number of their seat. */
  readonly open: readonly (readonly [number, OpenEpisode])[];
  readonly recent: readonly number[];
}

/** Episodes that an episode is compared with. */
const WINDOW = 100;

/**
 * Finds the successes among what was played: whole episodes with more return than the mean of the last 100. Where all episodes
 * bring the same there is none, so that nothing is imitated that is no better than the rest.
 */
export class Successes {
  private readonly open = new Map<number, OpenEpisode>();
  private recent: readonly number[] = [];

  /** The successes among the episodes that ended in these segments; of others the beginning is kept until they end. */
  take(segments: readonly Segment[]): ReplayEpisode[] {
    const ended: OpenEpisode[] = [];
    for (const segment of segments) {
      const episode = this.join(segment);
      const { seat } = segment;
      if (segment.end !== "cut") {
        ended.push(episode);
        if (seat !== undefined) this.open.delete(seat);
      } else if (seat !== undefined) {
        this.open.set(seat, episode);
      }
    }
    const returns = ended.map((episode) => episode.return);
    this.recent = [...this.recent, ...returns].slice(-Math.max(WINDOW, returns.length));
    const mean = this.recent.reduce((sum, value) => sum + value, 0) / this.recent.length;
    this.recent = this.recent.slice(-WINDOW);
    return ended.filter((episode) => episode.return > mean);
  }

  getState(): SuccessState {
    return { open: [...this.open], recent: this.recent };
  }

  setState({ open, recent }: SuccessState): void {
    this.open.clear();
    for (const [seat, episode] of open) this.open.set(seat, episode);
    this.recent = recent;
  }

  private join({ seat, isBeginning = true, turns }: Segment): OpenEpisode {
    const before = isBeginning || seat === undefined ? undefined : this.open.get(seat);
    return {
      // A reply that meant no action is nothing to imitate; its reward counts all the same.
      turns: [...(before?.turns ?? []), ...turns.filter(({ isValid }) => isValid).map(replayTurn)],
      return: turns.reduce((sum, { reward, penalty }) => sum + reward + penalty, before?.return ?? 0),
    };
  }
}

function replayTurn({ prompt, tokens, text }: Turn): ReplayTurn {
  return { prompt, tokens, text };
}
