import type { Metrics } from "../../algorithms/learner.js";
import { invalidArgument } from "../../../core/settings.js";
import type { RandomStream } from "../../../core/random/random-stream.js";
import { shuffleStratified } from "./shuffle-stratified.js";

/** A turn to learn from: the tokens of its prompt, and those of the reply as it was sampled. */
export interface ReplayTurn {
  readonly prompt: readonly number[];
  readonly tokens: readonly number[];
  /** The reply's text, which tells actions apart. */
  readonly text: string;
}

export interface ReplayEpisode {
  readonly turns: readonly ReplayTurn[];
  /** null for a demonstration that does not say; it counts as better than any. */
  readonly return: number | null;
}

/** All that a buffer holds; JSON. The oldest episode comes first. */
export interface ReplayBufferState {
  readonly episodes: readonly ReplayEpisode[];
}

export interface ReplayBufferOptions {
  /** Episodes that are kept. Default 1000. */
  readonly capacity?: number;
  /** Share of them, best return first, that is learnt from. Default 0.2. */
  readonly replayTopFraction?: number;
}

/**
 * Keeps the best episodes by return, each once. Where returns are equal the newer one is better: it is closer to the present
 * policy.
 */
export class ReplayBuffer {
  readonly capacity: number;
  readonly replayTopFraction: number;
  /** By their tokens; the oldest comes first. */
  private readonly episodes = new Map<string, ReplayEpisode>();

  /** Throws INVALID_ARGUMENT for a capacity below 1 or a share outside 0 to 1. */
  constructor({ capacity = 1000, replayTopFraction = 0.2 }: ReplayBufferOptions = {}) {
    if (!Number.isInteger(capacity) || capacity < 1)
      throw invalidArgument(`The capacity of a replay buffer must be a whole number of at least 1, not ${capacity}.`);
    if (!(replayTopFraction > 0 && replayTopFraction <= 1))
      throw invalidArgument(`replayTopFraction must be a share above 0 and at most 1, not ${replayTopFraction}.`);
    this.capacity = capacity;
    this.replayTopFraction = replayTopFraction;
  }

  get size(): number {
    return this.episodes.size;
  }

  /**
   * Keeps an episode if it is among the best; gives whether it is kept. One that is there already becomes the newest, with the
   * better of both returns.
   */
  add(episode: ReplayEpisode): boolean {
    if (episode.turns.length === 0) return false;
    const key = episodeKey(episode);
    const existing = this.episodes.get(key);
    this.episodes.delete(key);
    this.episodes.set(key, existing !== undefined && rank(existing) > rank(episode) ? existing : episode);
    if (this.size > this.capacity) this.episodes.delete(this.findWorstKey());
    return this.episodes.has(key);
  }

  /** The best share of the episodes, at least one where there is any; the best comes first. */
  getBest(fraction = this.replayTopFraction): ReplayEpisode[] {
    const newestFirst = [...this.episodes.values()].reverse();
    return newestFirst.sort((a, b) => compareRanks(rank(b), rank(a))).slice(0, Math.ceil(fraction * this.size));
  }

  /** Turns of the best episodes: at most `count`, none twice, with their different replies in about their shares. */
  sample(count: number, random: RandomStream): ReplayTurn[] {
    const turns = this.getBest().flatMap((episode) => episode.turns);
    const order = shuffleStratified(
      turns.map(({ text }) => text),
      random,
    );
    return order.slice(0, count).map((i) => turns[i]);
  }

  clear(): void {
    this.episodes.clear();
  }

  /** replay/size, and the returns of the episodes that have one. */
  getMetrics(): Metrics {
    const returns = [...this.episodes.values()].flatMap((episode) => (episode.return === null ? [] : [episode.return]));
    if (returns.length === 0) return { "replay/size": this.size };
    return {
      "replay/size": this.size,
      "replay/return_mean": returns.reduce((sum, value) => sum + value, 0) / returns.length,
      "replay/return_min": Math.min(...returns),
      "replay/return_max": Math.max(...returns),
    };
  }

  getState(): ReplayBufferState {
    return { episodes: [...this.episodes.values()] };
  }

  /** Holds what `getState` gave, and nothing else; of more than fit, the best. */
  setState({ episodes }: ReplayBufferState): void {
    this.clear();
    for (const episode of episodes) this.add(episode);
  }

  /** The key of the least return; of several the oldest. */
  private findWorstKey(): string {
    let worst: { readonly key: string; readonly rank: number } | undefined;
    for (const [key, episode] of this.episodes)
      if (worst === undefined || rank(episode) < worst.rank) worst = { key, rank: rank(episode) };
    return worst!.key;
  }
}

function rank(episode: ReplayEpisode): number {
  return episode.return ?? Infinity;
}

/** Infinity is as good as Infinity. */
function compareRanks(a: number, b: number): number {
  return a === b ? 0 : a - b;
}

function episodeKey({ turns }: ReplayEpisode): string {
  return turns.map(({ prompt, tokens }) => `${prompt.join()}>${tokens.join()}`).join(";");
}
