import { computeMeanAndError } from "../../rl/train/index.js";
import type { Trial } from "./sweep-plan.js";
import type { TrialSettings } from "./trial-settings.js";

/** The result of a run at the end of a rung. */
export interface RungResult {
  /** Counted from 1. */
  readonly rung: number;
  /** Value of the metric. */
  readonly value: number;
  readonly updates: number;
  readonly turns: number;
  readonly episodes: number;
}

/** A run of a trial with one of the seeds. */
export interface TrialRun {
  readonly seed: number;
  /** Folder of the run, relative to the sweep's. */
  readonly folder: string;
  readonly rungResults: readonly RungResult[];
  /** Reason of a failure. */
  readonly failure?: string;
}

/** The result of a trial. */
export interface TrialResult {
  readonly trial: number;
  readonly settings: TrialSettings;
  /** Last rung completed by all seeds; 0 before the first. */
  readonly rung: number;
  /** Mean of the metric over seeds at that rung. */
  readonly value?: number;
  /** Standard error of the mean; undefined for one seed. */
  readonly standardError?: number;
  readonly failure?: string;
  readonly runs: readonly TrialRun[];
}

export type SweepGoal = "maximize" | "minimize";

/** Summarizes the runs of a trial so far. A trial fails if one of its runs fails. */
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

/** Returns the metric of each seed at the end of a rung. */
function getValuesAt(runs: readonly TrialRun[], rung: number): number[] {
  return runs.flatMap(({ rungResults }) =>
    rungResults.filter((result) => result.rung === rung).map(({ value }) => value),
  );
}

/**
 * Sorts trials from best to worst: later rungs first, failed trials last, ties in the order of
 * trials.
 */
export function rankTrials(trials: readonly TrialResult[], goal: SweepGoal): TrialResult[] {
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
 * Selects the trials of a rung: the best among those whose seeds all completed the previous rung,
 * in the order of their numbers. Later results do not matter, so a resumed sweep selects the same
 * trials.
 */
export function selectPromoted(
  trials: readonly TrialResult[],
  { rung, count, seeds, goal }: { rung: number; count: number; seeds: number; goal: SweepGoal },
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
