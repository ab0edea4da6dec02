import { MEAN_RETURN } from "../charts/metric-curve.js";
import type { MetricRecord } from "../../../rl/tracking/tracker.js";
import { formatCount, formatDuration, formatNumber } from "../../../core/format.js";
import { renderSparkline } from "./sparkline.js";

/** How far a run is. */
export interface ProgressState {
  /** The share of the run that is done, 0 to 1. */
  readonly progress: number;
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
  readonly secondsLeft: number | undefined;
}

/** The mean return and its like have other names in other algorithms; the first that is there is shown. */
const RETURN_METRICS = [MEAN_RETURN, "reward"];
const KL_METRICS = ["objective/kl", "kl", "ppo/policy/approxkl", "policy/approxkl_avg"];
const ENTROPY_METRICS = ["entropy", "ppo/policy/entropy", "policy/entropy_avg", "objective/entropy"];
const SPEED_METRICS = ["rollout/turns_per_second"];

const BAR_WIDTH = 20;
const SPARKLINE_WIDTH = 16;

interface ProgressField {
  readonly text: string;
  readonly color?: number;
  /** Where there is no room, those of higher rank go first. */
  readonly priority: number;
}

const GREEN = 32;
const CYAN = 36;

/** The mean return of a state, or undefined. */
export function getMeanReturn({ metrics }: ProgressState): number | undefined {
  return findMetric(metrics, RETURN_METRICS);
}

/** A run in one line for a terminal that redraws it, at most `width` columns wide. */
export function formatProgressLine(
  state: ProgressState,
  history: ProgressHistory,
  width: number,
  useColor: boolean,
): string {
  const filled = Math.round(clampProgress(state) * BAR_WIDTH);
  const bar = { text: "█".repeat(filled) + "░".repeat(BAR_WIDTH - filled), color: CYAN, priority: 5 };
  const curve = { text: renderSparkline(history.returns, SPARKLINE_WIDTH), color: GREEN, priority: 8 };
  const [percent, episodes, reward, ...others] = progressFields(state, history);
  const line = fitToWidth(
    [bar, percent, episodes, reward, ...(history.returns.length > 1 ? [curve] : []), ...others],
    width,
  );
  return line.map((field) => colorize(field, useColor)).join("  ");
}

/** The same for a log file: whole, without bar, curve and colours. */
export function formatProgressLogLine(state: ProgressState, history: ProgressHistory): string {
  return progressFields(state, history)
    .map(({ text }) => text)
    .join("  ");
}

function progressFields(
  state: ProgressState,
  { secondsLeft }: ProgressHistory,
): [ProgressField, ProgressField, ProgressField, ...ProgressField[]] {
  const { metrics, updates, episodes, totalEpisodes } = state;
  const metricField = (label: string, names: readonly string[], priority: number): ProgressField[] => {
    const value = findMetric(metrics, names);
    return value === undefined ? [] : [{ text: `${label} ${formatNumber(value)}`, priority }];
  };
  const reward = getMeanReturn(state);
  const turnsPerSecond = findMetric(metrics, SPEED_METRICS);
  const total = totalEpisodes === undefined ? "" : `/${formatCount(totalEpisodes)}`;
  return [
    { text: `${Math.floor(clampProgress(state) * 100)} %`, priority: 0 },
    { text: `episode ${formatCount(episodes)}${total}`, priority: 3 },
    { text: reward === undefined ? "return -" : `return ${formatNumber(reward)}`, priority: 1 },
    ...metricField("kl", KL_METRICS, 4),
    ...metricField("entropy", ENTROPY_METRICS, 6),
    ...(turnsPerSecond === undefined ? [] : [{ text: `${formatNumber(turnsPerSecond)} turns/s`, priority: 7 }]),
    { text: `update ${formatCount(updates)}`, priority: 9 },
    ...(secondsLeft === undefined ? [] : [{ text: `${formatDuration(secondsLeft)} left`, priority: 2 }]),
  ];
}

function clampProgress({ progress }: ProgressState): number {
  return Math.min(1, Math.max(0, progress));
}

function findMetric(metrics: MetricRecord, names: readonly string[]): number | undefined {
  const name = names.find((candidate) => metrics[candidate] !== undefined);
  return name === undefined ? undefined : metrics[name];
}

function fitToWidth(fields: readonly ProgressField[], width: number): readonly ProgressField[] {
  const totalWidth = fields.reduce((sum, { text }) => sum + text.length, 2 * (fields.length - 1));
  if (totalWidth <= width || fields.length === 0) return fields;
  const lowestPriority = Math.max(...fields.map(({ priority }) => priority));
  return fitToWidth(
    fields.filter(({ priority }) => priority !== lowestPriority),
    width,
  );
}

function colorize({ text, color }: ProgressField, useColor: boolean): string {
  return color === undefined || !useColor ? text : `\u001B[${color}m${text}\u001B[0m`;
}
