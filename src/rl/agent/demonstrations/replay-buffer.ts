import { checkOptions } from "../../../core/settings.js";
import type { Metrics } from "../../algorithms/learner.js";
import { invalidArgument } from "../../../core/errors.js";
import type { RandomStream } from "../../../core/random/random-stream.js";
import { MAX_ALTERNATIVES, type TurnTokens } from "../../algorithms/update/turn-batch.js";
import type { ActionCandidates } from "../../rollout/trajectory.js";

/** A turn to train on: the tokens of its prompt and of its completion as sampled. JSON. */
export interface ReplayTurn {
  readonly prompt: readonly number[];
  readonly tokens: readonly number[];
  /**
   * The tokens among which each token is trained, at most `MAX_ALTERNATIVES`; null for the whole
   * vocabulary.
   */
  readonly allowedTokens?: readonly (readonly number[] | null)[];
  /** Only for an action that is sampled by its score. */
  readonly actionCandidates?: ActionCandidates;
  /** Text of the completion, used to stratify samples by action. */
  readonly text: string;
}

/**
 * Returns a turn to train on. Among more than `MAX_ALTERNATIVES` tokens, or those that top-k, top-p
 * and min-p kept, a token is trained among the whole vocabulary.
 */
export function toReplayTurn({
  prompt,
  tokens,
  text,
  allowedTokens,
  hasKeptTokens = false,
  actionCandidates,
}: TurnTokens & Pick<ReplayTurn, "text">): ReplayTurn {
  const isSmall = (allowed: Int32Array | undefined) => allowed !== undefined && allowed.length <= MAX_ALTERNATIVES;
  if (actionCandidates !== undefined) {
    const { sequences, weights, chosen } = actionCandidates;
    return { prompt, tokens, text, actionCandidates: { sequences, weights, chosen } };
  }
  if (hasKeptTokens || allowedTokens?.some(isSmall) !== true) return { prompt, tokens, text };
  const sets = allowedTokens.map((allowed) => (isSmall(allowed) ? Array.from(allowed!) : null));
  return { prompt, tokens, text, allowedTokens: sets };
}

/** Returns a turn as an update trains it. */
export function toTurnTokens({ prompt, tokens, allowedTokens, actionCandidates }: ReplayTurn): TurnTokens {
  const sets = allowedTokens?.map((allowed) => (allowed === null ? undefined : Int32Array.from(allowed)));
  return { prompt, tokens, allowedTokens: sets, actionCandidates };
}

/** Episode in the replay buffer. */
export interface ReplayEpisode {
  readonly turns: readonly ReplayTurn[];
  /** Null for a demonstration without a return, which ranks above all returns. */
  readonly return: number | null;
}

/** JSON state of a buffer, oldest episode first. */
export interface ReplayBufferState {
  readonly episodes: readonly ReplayEpisode[];
}

/** Options of a `ReplayBuffer`. */
export interface ReplayBufferOptions {
  /** Maximum number of episodes. Default 1000. */
  readonly capacity?: number;
  /** Fraction of the episodes, best return first, that is sampled from. Default 0.2. */
  readonly replayTopFraction?: number;
}

/**
 * Keeps the episodes with the highest returns, without duplicates. Of equal returns the newer ranks
 * higher, because it is closer to the current policy.
 */
export class ReplayBuffer {
  readonly capacity: number;
  readonly replayTopFraction: number;
  /** Episodes by their tokens, oldest first. */
  private readonly episodes = new Map<string, ReplayEpisode>();

  /** @throws INVALID_ARGUMENT for a capacity below 1 or a fraction outside (0, 1]. */
  constructor(options: ReplayBufferOptions = {}) {
    checkOptions("A ReplayBuffer", options, { capacity: true, replayTopFraction: true });
    const { capacity = 1000, replayTopFraction = 0.2 } = options;
    if (!Number.isInteger(capacity) || capacity < 1)
      throw invalidArgument(`\`capacity\` must be an integer >= 1, got ${capacity}.`);
    if (!(replayTopFraction > 0 && replayTopFraction <= 1))
      throw invalidArgument(`\`replayTopFraction\` must be > 0 and <= 1, got ${replayTopFraction}.`);
    this.capacity = capacity;
    this.replayTopFraction = replayTopFraction;
  }

  get size(): number {
    return this.episodes.size;
  }

  /**
   * Adds an episode if it is among the best, and returns whether it is in the buffer. A duplicate
   * becomes the newest episode, with the higher of both returns.
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

  /** Returns a fraction of the episodes, at least one unless empty, best first. */
  getBest(fraction = this.replayTopFraction): ReplayEpisode[] {
    const newestFirst = [...this.episodes.values()].reverse();
    return newestFirst.sort((a, b) => compareRanks(rank(b), rank(a))).slice(0, Math.ceil(fraction * this.size));
  }

  /**
   * Samples at most `count` turns of the best episodes without replacement, stratified by
   * completion.
   */
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

  /** Returns `replay/size` and statistics of the known returns. */
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

  /**
   * Replaces the contents by a saved state; of more episodes than `capacity`, the best are kept.
   */
  setState({ episodes }: ReplayBufferState): void {
    this.clear();
    for (const episode of episodes) this.add(episode);
  }

  /** Returns the key of the lowest return; of equal ones, the oldest. */
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

/** Compares ranks; equal infinities have no difference. */
function compareRanks(a: number, b: number): number {
  return a === b ? 0 : a - b;
}

function episodeKey({ turns }: ReplayEpisode): string {
  return turns.map(({ prompt, tokens }) => `${prompt.join()}>${tokens.join()}`).join(";");
}

/**
 * Returns the item indices in a random order in which each kind is spread evenly: any run of items
 * has about the overall proportions, so that every batch contains all actions.
 */
export function shuffleStratified(kinds: readonly string[], random: RandomStream): number[] {
  const byKind = new Map<string, number[]>();
  kinds.forEach((kind, i) => {
    const group = byKind.get(kind);
    if (group === undefined) byKind.set(kind, [i]);
    else group.push(i);
  });
  const positioned: { readonly item: number; readonly position: number }[] = [];
  for (const group of byKind.values()) {
    const start = random.random();
    random.permutation(group.length).forEach((index, i) => {
      positioned.push({ item: group[index], position: (i + start) / group.length });
    });
  }
  return positioned.sort((a, b) => a.position - b.position).map(({ item }) => item);
}
