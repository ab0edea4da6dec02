import { mean } from "../../core/numbers.js";
import { computeExtractionShares } from "../agent/extraction/extraction-counter.js";
import type { Metrics } from "../algorithms/learner.js";
import type { Tokenizer } from "../../models/text/index.js";
import type { Rollout } from "../rollout/rollout-collector.js";
import { completionLength, GAME_OPPONENTS, type EpisodeSummary, type Turn } from "../rollout/trajectory.js";
import type { CompletionRow } from "../tracking/index.js";
import { scoreGame } from "./league.js";
import type { RolloutCounts, TrainerState } from "./train-task.js";

/** Counts what a rollout adds to the totals of a run. */
export function countRollout({ trajectories, finishedEpisodes }: Rollout): RolloutCounts {
  const turns = trajectories.flatMap((trajectory) => trajectory.turns);
  return {
    turns: turns.length,
    tokens: turns.reduce((sum, turn) => sum + completionLength(turn), 0),
    returns: finishedEpisodes.map((episode) => episode.return),
  };
}

/** Computes the metrics of a rollout in environments or sessions. */
export function describeRollout(
  { trajectories, finishedEpisodes }: Rollout,
  state: TrainerState,
  seconds: number,
): Metrics {
  const turns = trajectories.flatMap((trajectory) => trajectory.turns);
  const returns = finishedEpisodes.map((episode) => episode.return);
  const successRate = computeSuccessRate(finishedEpisodes);
  return {
    // The window holds the whole last update, even where that has more episodes than the moving
    // mean.
    "rollout/ep_rew_mean": mean(returns.length > state.recentReturns.length ? returns : state.recentReturns),
    "rollout/ep_len_mean": mean(finishedEpisodes.map((episode) => episode.turns)),
    "rollout/truncated_ratio": mean(finishedEpisodes.map(({ end }) => (end === "truncated" ? 1 : 0))),
    ...(successRate === undefined ? {} : { "rollout/success_rate": successRate }),
    "rollout/invalid_action_ratio": mean(turns.map(({ isValid }) => (isValid ? 0 : 1))),
    "rollout/turns_per_second": turns.length / seconds,
    ...computeCompletionMetrics(turns),
    ...computeExtractionShares(turns),
    ...computeGameMetrics(finishedEpisodes),
    num_tokens: state.tokens,
    num_episodes: state.episodes,
    num_turns: state.turns,
  };
}

/**
 * Returns the share of successes among the episodes that say whether they are one; undefined
 * without any.
 */
export function computeSuccessRate(episodes: readonly EpisodeSummary[]): number | undefined {
  const known = episodes.flatMap(({ isSuccess }) => isSuccess ?? []);
  return known.length === 0 ? undefined : mean(known.map(Number));
}

/** Selects the first turns of a rollout, to log them. */
export function sampleCompletionRows(
  trajectories: Rollout["trajectories"],
  count: number,
  tokenizer: Tokenizer,
): readonly CompletionRow[] {
  const turns = trajectories.flatMap((trajectory) => trajectory.turns);
  return turns.slice(0, count).map(({ prompt, text, reward, isValid, extraction }) => ({
    prompt: decodeMessages(tokenizer, prompt),
    completion: text,
    reward,
    is_valid: isValid,
    extraction: isValid ? extraction : "failed",
  }));
}

/**
 * Decodes a prompt without special tokens, which separate its messages, with a line break in their
 * place.
 */
function decodeMessages(tokenizer: Tokenizer, prompt: readonly number[]): string {
  const messages: number[][] = [[]];
  for (const token of prompt) {
    if (tokenizer.isSpecial(token)) messages.push([]);
    else messages.at(-1)!.push(token);
  }
  const texts = messages.map((tokens) => tokenizer.decode(tokens).trim());
  return texts.filter((text) => text !== "").join("\n");
}

/** Computes statistics of the completions' lengths under TRL's names. */
export function computeCompletionMetrics(
  turns: readonly Pick<Turn, "tokens" | "numToolTokens" | "finishReason">[],
): Metrics {
  const lengths = turns.map(completionLength);
  return {
    "completions/mean_length": mean(lengths),
    "completions/min_length": lengths.reduce((a, b) => Math.min(a, b), Infinity),
    "completions/max_length": lengths.reduce((a, b) => Math.max(a, b), 0),
    "completions/clipped_ratio": mean(turns.map(({ finishReason }) => (finishReason === "length" ? 1 : 0))),
  };
}

/** Computes the metrics of self-play; empty for other episodes. */
function computeGameMetrics(episodes: readonly EpisodeSummary[]): Metrics {
  const games = episodes.flatMap(({ game, turns }) => (game === undefined ? [] : [{ ...game, turns }]));
  if (games.length === 0) return {};
  const metrics: Record<string, number> = {
    "self_play/illegal_game_ratio": mean(games.map(({ illegalMoves }) => (illegalMoves > 0 ? 1 : 0))),
  };
  for (const opponent of GAME_OPPONENTS) {
    const played = games.filter((game) => game.opponent === opponent);
    if (played.length === 0) continue;
    if (opponent === "self") {
      metrics["self_play/first_seat_return"] = mean(played.map(({ returns }) => returns[0]));
      metrics["self_play/draw_ratio"] = mean(played.map(({ returns }) => (returns[0] === returns[1] ? 1 : 0)));
    } else metrics[`self_play/score_against_${opponent}`] = mean(played.map(scoreGame));
  }
  return metrics;
}
