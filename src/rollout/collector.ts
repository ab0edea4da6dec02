import type { Seat, SeatState } from "./seat.js";
import type { EpisodeSummary, Segment } from "./turn.js";

/** What was played for one update. */
export interface Experience {
  readonly segments: readonly Segment[];
  /** The episodes that ended meanwhile, in the order in which they did. */
  readonly episodes: readonly EpisodeSummary[];
}

/** An episode that is wanted. */
export interface EpisodeTask {
  /** Starts the environment; without one its random stream runs on. */
  readonly seed?: number;
  /** Episodes of one group are compared with one another. */
  readonly group?: number;
}

export interface CollectOptions {
  readonly signal?: AbortSignal;
  /** Called after each round with the turns played so far and the episodes that ended in it. */
  readonly onRound?: (turns: number, ended: readonly EpisodeSummary[]) => void;
}

/**
 * Plays many episodes at once: in each round every seat that plays takes one turn, and all replies are drawn in one batch.
 * Which seats there are, and in what order, decides all; nothing depends on how long a reply took.
 */
export class Collector {
  constructor(private readonly seats: readonly Seat[]) {}

  /** Turns by turns until at least `minTurns` were taken; episodes that are under way are cut and go on in the next call. */
  async turns(minTurns: number, { onRound }: Omit<CollectOptions, "signal"> = {}): Promise<Experience> {
    const segments: Segment[] = [];
    const episodes: EpisodeSummary[] = [];
    for (let turns = 0; turns < minTurns; turns += this.seats.length) {
      await allSettled(this.seats.map(async (seat) => (seat.isPlaying ? undefined : seat.start())));
      const ended = await this.round(segments);
      episodes.push(...ended);
      onRound?.(turns + this.seats.length, ended);
    }
    this.seats.forEach((seat, number) => {
      if (seat.waitingTurns > 0) segments.push({ ...seat.takeSegment(), seat: number });
    });
    return { segments, episodes };
  }

  /**
   * Whole episodes, one for each task, on as many seats as there are; their results are in the tasks' order. A signal ends it with
   * what has been played.
   */
  async episodes(tasks: readonly EpisodeTask[], { signal, onRound }: CollectOptions = {}): Promise<Experience> {
    const segments: (Segment | undefined)[] = tasks.map(() => undefined);
    const summaries: (EpisodeSummary | undefined)[] = tasks.map(() => undefined);
    const playing = new Map<Seat, number>();
    let next = 0;
    let turns = 0;
    const isStopped = () => signal?.aborted === true;
    while (!isStopped()) {
      const starting = this.seats.filter((seat) => !playing.has(seat)).slice(0, tasks.length - next);
      for (const seat of starting) playing.set(seat, next++);
      await allSettled(starting.map((seat) => seat.start(tasks[playing.get(seat)!].seed)));
      if (playing.size === 0) break;
      const seats = [...playing.keys()];
      const results = await allSettled(seats.map((seat) => seat.turn(signal))).catch((error: unknown) => {
        if (isStopped()) return [];
        throw error;
      });
      turns += seats.length;
      const ended: EpisodeSummary[] = [];
      results.forEach((result, i) => {
        if (result === undefined) return;
        const place = playing.get(seats[i])!;
        segments[place] = { ...result.segment, group: tasks[place].group };
        summaries[place] = result.summary;
        ended.push(result.summary);
        playing.delete(seats[i]);
      });
      onRound?.(turns, ended);
    }
    return {
      segments: segments.filter((segment) => segment !== undefined),
      episodes: summaries.filter((summary) => summary !== undefined),
    };
  }

  getState(): readonly SeatState[] {
    return this.seats.map((seat) => seat.getState());
  }

  setState(states: readonly SeatState[]): void {
    this.seats.forEach((seat, i) => seat.setState(states[i]));
  }

  private async round(segments: Segment[]): Promise<EpisodeSummary[]> {
    const results = await allSettled(this.seats.map((seat) => seat.turn()));
    return results.flatMap((result, seat) => {
      if (result === undefined) return [];
      segments.push({ ...result.segment, seat });
      return [result.summary];
    });
  }
}

/** What all give, once none is under way any more; throws what the first of them that failed threw. */
async function allSettled<Result>(calls: readonly Promise<Result>[]): Promise<Result[]> {
  await Promise.allSettled(calls);
  return Promise.all(calls);
}
