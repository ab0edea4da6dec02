import { LlamaGymError } from "../../core/errors.js";

export interface ScheduleOptions {
  readonly kind: "constant" | "linear" | "cosine";
  /** Steps over which the rate rises linearly from 0. */
  readonly warmupSteps?: number;
  /** All steps, warm-up included; needed by the schedules that fall to 0 at their end. */
  readonly totalSteps?: number;
}

/**
 * The factor on the learning rate at a step (0 for the first), as Transformers' schedules of the same names.
 * Throws INVALID_ARGUMENT when a falling schedule is given no end.
 */
export function warmupScheduleFactor({ kind, warmupSteps = 0, totalSteps }: ScheduleOptions, step: number): number {
  if (kind !== "constant" && totalSteps === undefined) {
    throw new LlamaGymError(
      "INVALID_ARGUMENT",
      `A ${kind} schedule needs totalSteps, the number of steps until it ends.`,
    );
  }
  if (step < warmupSteps) return step / Math.max(1, warmupSteps);
  if (kind === "constant") return 1;
  const progress = Math.min(1, (step - warmupSteps) / Math.max(1, totalSteps! - warmupSteps));
  return kind === "linear" ? 1 - progress : 0.5 * (1 + Math.cos(Math.PI * progress));
}
