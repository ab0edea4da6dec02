import type { Clock } from "../../../core/clock.js";
import { formatCount, formatDuration, formatNumber } from "../../../core/format.js";
import type { MetricRecord } from "../../../rl/tracking/index.js";
import { MEAN_RETURN } from "../charts/metric-curve.js";
import { fractionFields, type ProgressField } from "./progress-fields.js";
import { renderSparkline } from "./sparkline.js";

/** The progress of a training run. */
export interface ProgressState {
  /** Completed fraction of the run, 0 to 1. */
  readonly progress: number;
  readonly updates: number;
  readonly episodes: number;
  readonly turns?: number;
  /** Number of episodes after which the run ends, if that is its limit. */
  readonly totalEpisodes?: number;
  /** Metrics of the last update; empty before the first. */
  readonly metrics: MetricRecord;
}

/** Algorithms log these quantities under different names; the first present one is shown. */
const RETURN_METRICS = [MEAN_RETURN, "reward"];
const KL_METRICS = ["objective/kl", "kl", "policy/approxkl_avg"];
const ENTROPY_METRICS = ["entropy", "objective/entropy"];
const SPEED_METRICS = ["rollout/turns_per_second"];

const SPARKLINE_WIDTH = 16;
const GREEN = 32;

/** Keeps the history of a run that its progress line needs: mean returns and the speed. */
export class TrainingProgress {
  private readonly returns: number[] = [];
  private state: ProgressState = { progress: 0, updates: 0, episodes: 0, metrics: {} };
  private start: { readonly time: number; readonly progress: number } | undefined;

  constructor(private readonly now: Clock = () => performance.now()) {}

  update(state: ProgressState): void {
    const meanReturn = findMetric(state.metrics, RETURN_METRICS);
    if (meanReturn !== undefined && (this.start === undefined || state.updates !== this.state.updates))
      this.returns.push(meanReturn);
    this.start ??= { time: this.now(), progress: state.progress };
    this.state = state;
  }

  readonly fields = (): readonly ProgressField[] =>
    trainingFields(this.state, { returns: this.returns, secondsLeft: this.secondsLeft() });

  /**
   * Extrapolates from the speed since the first update, which excludes the earlier part of a
   * resumed run.
   */
  private secondsLeft(): number | undefined {
    const { progress } = this.state;
    if (this.start === undefined || progress <= this.start.progress || progress >= 1) return undefined;
    const elapsed = (this.now() - this.start.time) / 1000;
    return (elapsed * (1 - progress)) / (progress - this.start.progress);
  }
}

export interface ProgressHistory {
  /** The mean return after each update. */
  readonly returns: readonly number[];
  /** Undefined until it can be estimated. */
  readonly secondsLeft: number | undefined;
}

/** Returns the fields of a training run's progress line. */
export function trainingFields(
  { progress, metrics, updates, episodes, turns, totalEpisodes }: ProgressState,
  { returns, secondsLeft }: ProgressHistory,
): readonly ProgressField[] {
  const metricField = (format: (value: string) => string, names: readonly string[], priority: number) => {
    const value = findMetric(metrics, names);
    return value === undefined ? [] : [{ text: format(formatNumber(value)), priority }];
  };
  const total = totalEpisodes === undefined ? "" : `/${formatCount(totalEpisodes)}`;
  const curve = { text: renderSparkline(returns, SPARKLINE_WIDTH), color: GREEN, priority: 8, isGraphic: true };
  return [
    ...fractionFields(progress),
    { text: `episode ${formatCount(episodes)}${total}`, priority: 3 },
    ...(turns === undefined ? [] : [{ text: `turn ${formatCount(turns)}`, priority: 5 }]),
    ...metricField((value) => `return ${value}`, RETURN_METRICS, 1),
    ...(returns.length > 1 ? [curve] : []),
    ...metricField((value) => `kl ${value}`, KL_METRICS, 4),
    ...metricField((value) => `entropy ${value}`, ENTROPY_METRICS, 6),
    ...metricField((value) => `${value} turns/s`, SPEED_METRICS, 7),
    { text: `update ${formatCount(updates)}`, priority: 9 },
    ...(secondsLeft === undefined ? [] : [{ text: `${formatDuration(secondsLeft)} left`, priority: 2 }]),
  ];
}

/** Returns the first of the metrics that has a finite value; a mean over no episodes is NaN. */
function findMetric(metrics: MetricRecord, names: readonly string[]): number | undefined {
  return names.map((name) => metrics[name]).find((value) => Number.isFinite(value));
}
