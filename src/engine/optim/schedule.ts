import { invalidArgument } from "../../core/errors.js";

/** Decay schedules over the progress of a run. */
export const SCHEDULES = ["constant", "linear", "cosine"] as const;

export type ScheduleName = (typeof SCHEDULES)[number];

/** Returns the factor at `progress` in [0, 1]: 1 at the start, 0 at the end unless constant. */
export function scheduleFactor(schedule: ScheduleName, progress: number): number {
  if (schedule === "constant") return 1;
  return schedule === "linear" ? 1 - progress : 0.5 * (1 + Math.cos(Math.PI * progress));
}

/** Options of a learning-rate schedule with warm-up. */
export interface ScheduleOptions {
  readonly kind: ScheduleName;
  /** Number of steps of linear warmup from 0. */
  readonly warmupSteps?: number;
  /** Total number of steps including warmup; required by "linear" and "cosine". */
  readonly totalSteps?: number;
}

/**
 * Returns the learning-rate factor at a step (from 0), as Transformers' schedules of the same names.
 * @throws INVALID_ARGUMENT when a decaying schedule has no `totalSteps`.
 */
export function warmupScheduleFactor({ kind, warmupSteps = 0, totalSteps }: ScheduleOptions, step: number): number {
  if (kind !== "constant" && totalSteps === undefined)
    throw invalidArgument(`A ${kind} schedule requires \`totalSteps\`.`);
  if (step < warmupSteps) return step / Math.max(1, warmupSteps);
  return scheduleFactor(kind, Math.min(1, (step - warmupSteps) / Math.max(1, (totalSteps ?? 0) - warmupSteps)));
}
