import { invalidArgument } from "../../core/errors.js";

/** Decay schedules over the progress of a run, by Transformers' names. */
export const SCHEDULES = [
  "constant",
  "constant_with_warmup",
  "linear",
  "cosine",
  "cosine_with_restarts",
  "cosine_with_min_lr",
  "polynomial",
  "cosine_warmup_with_min_lr",
  "warmup_stable_decay",
  "inverse_sqrt",
] as const;

export type ScheduleName = (typeof SCHEDULES)[number];

/** Schedules that depend on the number of steps, not on the progress alone. */
type StepScheduleName = "inverse_sqrt" | "cosine_warmup_with_min_lr";

/** Steps after which inverse_sqrt without a warm-up has fallen to the root of a half. */
const INVERSE_SQRT_TIMESCALE = 10_000;

/** Whether a schedule depends on the number of steps, not on the progress alone. */
export function isStepSchedule(kind: ScheduleName): kind is StepScheduleName {
  return kind === "inverse_sqrt" || kind === "cosine_warmup_with_min_lr";
}

/** The arguments of some schedules. */
export interface ScheduleShape {
  /** Factor at the end of schedules with min_lr, polynomial and warmup_stable_decay. Default 0. */
  readonly lrMinRate?: number;
  /** Cosines of cosine_with_restarts. Default 1. */
  readonly lrNumCycles?: number;
  /** Exponent of polynomial. Default 1. */
  readonly lrPower?: number;
  /** Last part of the steps after the warm-up, in which warmup_stable_decay falls. Default 0.1. */
  readonly lrDecayRatio?: number;
}

const halfCosine = (progress: number) => 0.5 * (1 + Math.cos(Math.PI * progress));

/**
 * Returns the factor at `progress` in [0, 1]: 1 at the start, 0 or `lrMinRate` at the end unless
 * constant.
 */
export function scheduleFactor(
  schedule: Exclude<ScheduleName, StepScheduleName>,
  progress: number,
  { lrMinRate = 0, lrNumCycles = 1, lrPower = 1, lrDecayRatio = 0.1 }: ScheduleShape = {},
): number {
  const aboveMinimum = (factor: number) => lrMinRate + (1 - lrMinRate) * factor;
  switch (schedule) {
    case "constant":
    case "constant_with_warmup":
      return 1;
    case "linear":
      return 1 - progress;
    case "cosine":
      return halfCosine(progress);
    case "cosine_with_restarts":
      return progress >= 1 ? 0 : halfCosine((lrNumCycles * progress) % 1);
    case "cosine_with_min_lr":
      return aboveMinimum(halfCosine(progress));
    case "polynomial":
      return aboveMinimum((1 - progress) ** lrPower);
    case "warmup_stable_decay":
      return aboveMinimum(halfCosine(Math.max(0, 1 - (1 - progress) / lrDecayRatio)));
  }
}

/** Options of a learning-rate schedule with warm-up. */
export interface ScheduleOptions extends ScheduleShape {
  readonly kind: ScheduleName;
  /** Number of steps of linear warmup from 0. */
  readonly warmupSteps?: number;
  /** Total number of steps including warmup; required by schedules that decay. */
  readonly totalSteps?: number;
}

/**
 * Returns the learning-rate factor at a step (from 0), as Transformers' schedules of the same
 * names.
 * @throws INVALID_ARGUMENT when a decaying schedule has no `totalSteps`.
 */
export function warmupScheduleFactor(
  { kind, warmupSteps = 0, totalSteps, ...shape }: ScheduleOptions,
  step: number,
): number {
  if (!kind.startsWith("constant") && kind !== "inverse_sqrt" && totalSteps === undefined)
    throw invalidArgument(`A ${kind} schedule requires \`totalSteps\`.`);
  if (isStepSchedule(kind)) return stepScheduleFactor(kind, step, { warmupSteps, totalSteps, ...shape });
  if (step < warmupSteps) {
    const start = kind === "warmup_stable_decay" ? (shape.lrMinRate ?? 0) : 0;
    return start + ((1 - start) * step) / warmupSteps;
  }
  const progress = (step - warmupSteps) / Math.max(1, (totalSteps ?? 0) - warmupSteps);
  return scheduleFactor(kind, Math.min(1, progress), shape);
}

function stepScheduleFactor(
  kind: StepScheduleName,
  step: number,
  { warmupSteps, totalSteps = 0, ...shape }: Omit<ScheduleOptions, "kind"> & { readonly warmupSteps: number },
): number {
  if (kind === "inverse_sqrt") {
    const timescale = warmupSteps || INVERSE_SQRT_TIMESCALE;
    if (step < warmupSteps) return step / warmupSteps;
    return 1 / Math.sqrt((step + timescale - warmupSteps) / timescale);
  }
  if (step < warmupSteps) return (step + 1) / warmupSteps;
  const progress = (step - warmupSteps + 1) / Math.max(1, totalSteps - warmupSteps);
  return scheduleFactor("cosine_with_min_lr", Math.min(1, progress), shape);
}
