import { computeMeanAndError } from "../../rl/train/evaluate.js";
import type { Trial } from "./sweep-plan.js";
import type { TrialSettings } from "./trial-settings.js";

/** What a run had come to at the end of a rung. */
export interface RungResult {
  /** From 1. */
  readonly rung: number;
  /** The metric. */
  readonly value: number;
  readonly updates: number;
  readonly turns: number;
  readonly episodes: number;
}

/** A trial's run with one of the seeds. */
export interface TrialRun {
  readonly seed: number;
  /** The run's folder below the sweep's. */
  readonly folder: string;
  readonly rungResults: readonly RungResult[];
  /** Why it ended before its time. */
  readonly failure?: string;
}

/** What came of a trial. */
export interface TrialResult {
  readonly trial: number;
  readonly settings: TrialSettings;
  /** The last rung that all of its seeds have been through; 0 before the first. */
  readonly rung: number;
  /** The metric there, the mean over seeds. */
  readonly value?: number;
  /** Standard error of the mean; of one seed there is none. */
  readonly standardError?: number;
  readonly failure?: string;
  readonly runs: readonly TrialRun[];
}

export type Goal = "maximize" | "minimize";

/** What came of a trial so far. A trial of which one run failed has failed. */
export function summarizeTrial(
  { number, settings, failure }: Trial,
  runs: readonly TrialRun[],
  seeds: readonly number[],
): TrialResult {
  const failedRun = runs.find((run) => run.failure !== undefined);
  const reason = failure ?? (failedRun === undefined ? undefined : `seed ${failedRun.seed}: ${failedRun.failure!}`);
  const rung = runs.length < seeds.length ? 0 : Math.min(...runs.map((run) => run.rungResults.at(-1)?.rung ?? 0));
  const values = getValuesAt(runs, rung);
  const { meanReturn: value, standardError } = computeMeanAndError(values);
  return {
    trial: number,
    settings,
    rung,
    ...(rung === 0 ? {} : { value }),
    ...(rung === 0 || Number.isNaN(standardError) ? {} : { standardError }),
    ...(reason === undefined ? {} : { failure: reason }),
    runs,
  };
}

/** The metric of each seed at the end of a rung. */
function getValuesAt(runs: readonly TrialRun[], rung: number): number[] {
  return runs.flatMap(({ rungResults }) =>
    rungResults.filter((result) => result.rung === rung).map(({ value }) => value),
  );
}

/** Best first: those that came further before others, those that failed last; of equals the first that was tried. */
export function rankTrials(trials: readonly TrialResult[], goal: Goal): TrialResult[] {
  const sign = goal === "maximize" ? -1 : 1;
  const failureRank = ({ failure }: TrialResult) => (failure === undefined ? 0 : 1);
  return [...trials].sort(
    (a, b) =>
      failureRank(a) - failureRank(b) ||
      b.rung - a.rung ||
      sign * ((a.value ?? 0) - (b.value ?? 0)) ||
      a.trial - b.trial,
  );
}

/**
 * The trials that a rung trains: the best of those of which all seeds came through the rung before, by what they had come to
 * then; in the order of their numbers. What happened to them since changes nothing, so that a sweep that goes on decides as before.
 */
export function selectPromoted(
  trials: readonly TrialResult[],
  { rung, count, seeds, goal }: { rung: number; count: number; seeds: number; goal: Goal },
): number[] {
  const candidates = trials
    .map(({ trial, settings, runs }) => ({ trial, settings, runs, values: getValuesAt(runs, rung - 1) }))
    .filter(({ values }) => values.length === seeds)
    .map(({ values, ...trial }) => ({ ...trial, rung: rung - 1, value: computeMeanAndError(values).meanReturn }));
  return rankTrials(candidates, goal)
    .slice(0, count)
    .map(({ trial }) => trial)
    .sort((a, b) => a - b);
}
