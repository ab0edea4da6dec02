import { LlamaGymError } from "../../core/errors.js";

/** Options of a learning-rate schedule with warm-up. */
export interface ScheduleOptions {
  readonly kind: "constant" | "linear" | "cosine";
  /** Number of steps of linear warmup from 0. */
  readonly warmupSteps?: number;
  /** Total number of steps including warmup; required by "linear" and "cosine". */
  readonly totalSteps?: number;
}

/**
 * Returns the learning-rate factor at a step (from 0), as Transformers' schedules of the same
 * names.
 * @throws INVALID_ARGUMENT when a decaying schedule has no `totalSteps`.
 */
export function warmupScheduleFactor({ kind, warmupSteps = 0, totalSteps }: ScheduleOptions, step: number): number {
  if (kind !== "constant" && totalSteps === undefined) {
    throw new LlamaGymError("INVALID_ARGUMENT", `A ${kind} schedule requires \`totalSteps\`.`);
  }
  if (step < warmupSteps) return step / Math.max(1, warmupSteps);
  if (kind === "constant") return 1;
  const progress = Math.min(1, (step - warmupSteps) / Math.max(1, totalSteps! - warmupSteps));
  return kind === "linear" ? 1 - progress : 0.5 * (1 + Math.cos(Math.PI * progress));
}
