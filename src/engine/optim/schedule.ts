/** Decay schedules over the progress of a run. */
export const SCHEDULES = ["constant", "linear", "cosine"] as const;
export type ScheduleName = (typeof SCHEDULES)[number];

/** Returns the factor at `progress` in [0, 1]: 1 at the start, 0 at the end unless constant. */
export function scheduleFactor(schedule: ScheduleName, progress: number): number {
  if (schedule === "constant") return 1;
  return schedule === "linear" ? 1 - progress : 0.5 * (1 + Math.cos(Math.PI * progress));
}
