import { MEAN_RETURN } from "../jsonl/metric-curve.js";
import type { MetricRecord } from "../tracker.js";
import { formatCount, formatDuration, formatNumber } from "./format.js";
import { sparkline } from "./sparkline.js";

/** How far a run is. */
export interface ProgressState {
  /** The share of the run that is done, 0 to 1. */
  readonly done: number;
  readonly updates: number;
  readonly episodes: number;
  /** How many episodes the run is to have, where that is what ends it. */
  readonly totalEpisodes?: number;
  /** Those of the last update; none before the first. */
  readonly metrics: MetricRecord;
}

/** What the line knows beyond the state. */
export interface ProgressHistory {
  /** The mean return after each update. */
  readonly returns: readonly number[];
  /** Seconds; undefined while nothing can be said. */
  readonly left: number | undefined;
}

/** The mean return and its like have other names in other algorithms; the first that is there is shown. */
const RETURN = [MEAN_RETURN, "reward"];
const KL = ["objective/kl", "kl", "ppo/policy/approxkl", "policy/approxkl_avg"];
const ENTROPY = ["entropy", "ppo/policy/entropy", "policy/entropy_avg", "objective/entropy"];
const TURNS_PER_SECOND = ["rollout/turns_per_second"];

const BAR_WIDTH = 20;
const SPARKLINE_WIDTH = 16;

interface Segment {
  readonly text: string;
  readonly colour?: number;
  /** Where there is no room, those of higher rank go first. */
  readonly rank: number;
}

const GREEN = 32;
const CYAN = 36;

/** The mean return of a state, or undefined. */
export function meanReturn({ metrics }: ProgressState): number | undefined {
  return firstOf(metrics, RETURN);
}

/** A run in one line for a terminal that redraws it, at most `width` columns wide. */
export function progressLine(state: ProgressState, history: ProgressHistory, width: number, colour: boolean): string {
  const filled = Math.round(share(state) * BAR_WIDTH);
  const bar = { text: "█".repeat(filled) + "░".repeat(BAR_WIDTH - filled), colour: CYAN, rank: 5 };
  const curve = { text: sparkline(history.returns, SPARKLINE_WIDTH), colour: GREEN, rank: 8 };
  const [percent, episodes, reward, ...others] = facts(state, history);
  const line = fitted(
    [bar, percent, episodes, reward, ...(history.returns.length > 1 ? [curve] : []), ...others],
    width,
  );
  return line.map((segment) => painted(segment, colour)).join("  ");
}

/** The same for a log file: whole, without bar, curve and colours. */
export function progressLogLine(state: ProgressState, history: ProgressHistory): string {
  return facts(state, history)
    .map(({ text }) => text)
    .join("  ");
}

function facts(state: ProgressState, { left }: ProgressHistory): [Segment, Segment, Segment, ...Segment[]] {
  const { metrics, updates, episodes, totalEpisodes } = state;
  const number = (label: string, names: readonly string[], rank: number): Segment[] => {
    const value = firstOf(metrics, names);
    return value === undefined ? [] : [{ text: `${label} ${formatNumber(value)}`, rank }];
  };
  const reward = meanReturn(state);
  const speed = firstOf(metrics, TURNS_PER_SECOND);
  const total = totalEpisodes === undefined ? "" : `/${formatCount(totalEpisodes)}`;
  return [
    { text: `${Math.floor(share(state) * 100)} %`, rank: 0 },
    { text: `episode ${formatCount(episodes)}${total}`, rank: 3 },
    { text: reward === undefined ? "return -" : `return ${formatNumber(reward)}`, rank: 1 },
    ...number("kl", KL, 4),
    ...number("entropy", ENTROPY, 6),
    ...(speed === undefined ? [] : [{ text: `${formatNumber(speed)} turns/s`, rank: 7 }]),
    { text: `update ${formatCount(updates)}`, rank: 9 },
    ...(left === undefined ? [] : [{ text: `${formatDuration(left)} left`, rank: 2 }]),
  ];
}

function share({ done }: ProgressState): number {
  return Math.min(1, Math.max(0, done));
}

function firstOf(metrics: MetricRecord, names: readonly string[]): number | undefined {
  const name = names.find((candidate) => metrics[candidate] !== undefined);
  return name === undefined ? undefined : metrics[name];
}

function fitted(segments: readonly Segment[], width: number): readonly Segment[] {
  const needed = segments.reduce((sum, { text }) => sum + text.length, 2 * (segments.length - 1));
  if (needed <= width || segments.length === 0) return segments;
  const least = Math.max(...segments.map(({ rank }) => rank));
  return fitted(
    segments.filter(({ rank }) => rank !== least),
    width,
  );
}

function painted({ text, colour }: Segment, wanted: boolean): string {
  return colour === undefined || !wanted ? text : `\u001B[${colour}m${text}\u001B[0m`;
}
