import { mean } from "../../core/numbers.js";
import type { ChatMessage, Tokenizer } from "../../models/text/index.js";
import type { Learner, TurnInsight } from "../algorithms/learner.js";
import type { Trajectory, Turn } from "../rollout/trajectory.js";
import type { RolloutRecord } from "../tracking/rollouts/chunk.js";
import type { TurnDetail, EpisodeRow } from "../tracking/rollouts/rollout-record.js";
import { DistributionSummaries, round } from "./distribution-summaries.js";

/** Which episodes are recorded: none, some of each update, or all. */
export const ROLLOUT_MODES = ["none", "samples", "all"] as const;
export type RolloutMode = (typeof ROLLOUT_MODES)[number];

/** Environments whose turns are recorded by "samples". */
export const SAMPLED_ENV_SLOTS = 2;
/**
 * Tokens of prompts and completions after which "samples" records no further episode of an update:
 * a bound on its cost.
 */
const MAX_SAMPLED_TOKENS = 2_500;
/** The same for groups, of which all members are compared; their updates take longer. */
const MAX_SAMPLED_GROUP_TOKENS = 20_000;

export interface RecordRolloutOptions {
  readonly step: number;
  readonly mode: RolloutMode;
  readonly tokenizer: Tokenizer;
  /** With `batch`, the update after which the rollout is recorded. */
  readonly learner?: Pick<Learner, "inspect">;
  readonly batch?: unknown;
}

/** Returns how many groups of an update are recorded. */
export function recordedGroups(mode: RolloutMode): number {
  return { none: 0, samples: 1, all: Infinity }[mode];
}

/**
 * Builds the recording of an update from its recorded trajectories; undefined where none is
 * recorded.
 */
export function recordRollout(
  trajectories: readonly Trajectory[],
  { step, mode, tokenizer, learner, batch }: RecordRolloutOptions,
): RolloutRecord | undefined {
  if (mode === "none") return undefined;
  const selected = selectTrajectories(trajectories, mode === "all");
  if (selected.length === 0) return undefined;
  const insights = learner?.inspect?.(batch, new Set(selected.flatMap(({ turns }) => turns))) ?? new Map();
  const episodes: RolloutRecord["episodes"][number][] = [];
  const ids = new Set<number>();
  const summaries = new DistributionSummaries();
  for (const trajectory of selected) {
    const { turns, final } = trajectory;
    const details = turns.map((turn) => toTurnDetail(turn, insights.get(turn), { step, tokenizer, summaries }));
    addReturnsToGo(details);
    for (const { prompt, tokens, alternatives } of details) {
      for (const id of prompt) ids.add(id);
      for (const id of tokens) ids.add(id);
      for (const tokensAt of alternatives ?? []) for (const { token } of tokensAt) ids.add(token);
    }
    episodes.push({
      row: toRow(trajectory, `${step}.${episodes.length}`, step, insights),
      turns: details,
      final: { observation: final?.observation ?? null, render: final?.render ?? null },
    });
  }
  return { episodes, vocabulary: describeTokens(ids, tokenizer) };
}

/** Selects recorded trajectories: all of them, or the first ones up to a number of tokens. */
function selectTrajectories(trajectories: readonly Trajectory[], isAll: boolean): readonly Trajectory[] {
  let tokens = 0;
  return trajectories.filter(({ turns, group }) => {
    const maxTokens = group === undefined ? MAX_SAMPLED_TOKENS : MAX_SAMPLED_GROUP_TOKENS;
    if (turns.length === 0 || turns[0].recording === undefined || (!isAll && tokens >= maxTokens)) return false;
    tokens += turns.reduce((sum, turn) => sum + turn.prompt.length + turn.tokens.length, 0);
    return true;
  });
}

/**
 * Returns what a recording without an environment has as observation: a prompt's text or its last
 * message.
 */
export function describePrompt(prompt: string | ArrayLike<number> | readonly ChatMessage[]): string {
  if (typeof prompt === "string") return prompt;
  const last = prompt[prompt.length - 1];
  if (typeof last !== "object") return "";
  return typeof last.content === "string" ? last.content : JSON.stringify(last.content ?? last);
}

/** Returns the texts of tokens. */
export function describeTokens(ids: Iterable<number>, tokenizer: Tokenizer): RolloutRecord["vocabulary"] {
  const texts: Record<number, string> = {};
  const special: number[] = [];
  for (const id of ids) {
    const isSpecial = tokenizer.isSpecial(id);
    texts[id] = isSpecial ? tokenizer.decode([id]) : tokenizer.decodeContinuation([id]);
    if (isSpecial) special.push(id);
  }
  return { texts, special };
}

function toRow(
  { turns, end, group, envSlot, startsEpisode = true, seed, seat, opponent }: Trajectory,
  id: string,
  step: number,
  insights: ReadonlyMap<Turn, TurnInsight>,
): EpisodeRow {
  const advantages = turns.flatMap((turn) => Array.from(insights.get(turn)?.advantages ?? []));
  return {
    id,
    step,
    envSlot: envSlot ?? null,
    group: group ?? null,
    return: round(turns.reduce((sum, { reward }) => sum + reward, 0)),
    turns: turns.length,
    tokens: turns.reduce((sum, { tokens }) => sum + tokens.length, 0),
    end,
    startsEpisode,
    seed: seed ?? null,
    advantage: round(mean(advantages)),
    hasSignal: insights.get(turns[0])?.hasSignal ?? true,
    ...(seat === undefined ? {} : { seat }),
    ...(opponent === undefined ? {} : { opponent }),
  };
}

/** Describes a turn, with what an update computed about it where there was one. */
export function toTurnDetail(
  turn: Turn,
  insight: TurnInsight | undefined,
  {
    step,
    tokenizer,
    summaries = new DistributionSummaries(),
  }: Pick<RecordRolloutOptions, "step" | "tokenizer"> & { readonly summaries?: DistributionSummaries },
): TurnDetail {
  const { prompt, tokens, text, finishReason, isValid, extraction, reward, allowedTokens, recording } = turn;
  const { actionCandidates } = turn;
  const decisions = insight?.decisions;
  const spread = (values: ArrayLike<number> | undefined) => spreadOverTokens(values, decisions, tokens.length);
  // Candidates are one decision; its log-probability belongs to the first token.
  const logProbs = tokens.map((_, i) => round(turn.logProbs[i] ?? NaN));
  const distributions = recording?.distributions ?? [];
  const hasDistribution = distributions.some((distribution) => distribution !== undefined);
  const ratios = insight?.ratios?.length === 1 ? decisions?.map(() => insight.ratios![0]) : insight?.ratios;
  const described = hasDistribution
    ? tokens.map((_, i) => summaries.describe(distributions[i], allowedTokens?.[i]))
    : undefined;
  return {
    step,
    observation: recording?.observation ?? null,
    render: recording?.render ?? null,
    prompt,
    tokens,
    text,
    finishReason,
    isValid,
    extraction: extraction ?? null,
    action: recording?.action ?? null,
    reward: round(reward),
    returnToGo: null,
    value: firstFinite(insight?.values ?? turn.values),
    advantage: round(mean(Array.from(insight?.advantages ?? []))),
    logProbs,
    refLogProbs: spread(insight?.refLogProbs),
    ...(insight?.teacherLogProbs === undefined ? {} : { teacherLogProbs: spread(insight.teacherLogProbs) }),
    entropies: spread(insight?.entropies) ?? described?.map(({ entropy }) => entropy) ?? null,
    values: spread(insight?.values) ?? turn.values?.map(round) ?? null,
    advantages: spread(insight?.advantages),
    returns: spread(insight?.returns),
    ratios: spread(ratios),
    clipped: markClipped(spread(ratios), spread(insight?.advantages), insight?.clipRange),
    marks: markTokens(turn, insight),
    allowedCounts: allowedTokens?.map((allowed) => allowed?.length ?? 0) ?? null,
    alternatives:
      described?.map(({ alternatives }) => alternatives) ??
      allowedTokens?.map((allowed) => summaries.describe(undefined, allowed).alternatives) ??
      null,
    candidates:
      actionCandidates?.sequences.map((sequence, i) => ({
        text: tokenizer.decodeContinuation(sequence),
        probability: round(actionCandidates.probabilities?.[i] ?? NaN),
      })) ?? null,
  };
}

/** Sets the sums of the rewards from each turn on. */
export function addReturnsToGo(turns: TurnDetail[]): void {
  let sum = 0;
  for (let i = turns.length - 1; i >= 0; i--) {
    sum += turns[i].reward ?? 0;
    turns[i] = { ...turns[i], returnToGo: round(sum) };
  }
}

/** "f" forced, "m" masked, "t" trained; without an update every token that was a choice is "t". */
function markTokens({ tokens, allowedTokens, actionCandidates }: Turn, insight: TurnInsight | undefined): string {
  if (actionCandidates !== undefined) return (insight?.isTrained === false ? "m" : "t").repeat(tokens.length);
  const masked = new Set(insight?.decisions.filter((_, i) => insight.policyMask?.[i] === 0));
  return tokens
    .map((_, i) => {
      if (allowedTokens?.[i]?.length === 1) return "f";
      return insight?.isTrained === false || masked.has(i) ? "m" : "t";
    })
    .join("");
}

function markClipped(
  ratios: readonly (number | null)[] | null,
  advantages: readonly (number | null)[] | null,
  range: TurnInsight["clipRange"],
): (0 | 1)[] | null {
  if (ratios === null || advantages === null || range === undefined) return null;
  return ratios.map((ratio, i) => {
    const advantage = advantages[i] ?? 0;
    if (ratio === null) return 0;
    return (advantage > 0 && ratio > range[1]) || (advantage < 0 && ratio < range[0]) ? 1 : 0;
  });
}

/** Puts one value per decision at the tokens of the decisions. */
function spreadOverTokens(
  values: ArrayLike<number> | undefined,
  decisions: readonly number[] | undefined,
  length: number,
): (number | null)[] | null {
  if (values === undefined || decisions === undefined) return null;
  const spread = Array.from({ length }, (): number | null => null);
  decisions.forEach((token, i) => (spread[token] = round(values[i])));
  return spread;
}

function firstFinite(values: ArrayLike<number> | undefined): number | null {
  return round(Array.from(values ?? []).find(Number.isFinite) ?? NaN);
}
