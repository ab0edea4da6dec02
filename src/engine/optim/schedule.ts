/** How a quantity falls while a run goes on. */
export const SCHEDULES = ["constant", "linear", "cosine"] as const;
export type ScheduleName = (typeof SCHEDULES)[number];

/** The factor of a quantity when `done` of the run is done (0 to 1): 1 at its beginning, 0 at its end unless it is constant. */
export function scheduleFactor(schedule: ScheduleName, progress: number): number {
  if (schedule === "constant") return 1;
  return schedule === "linear" ? 1 - progress : 0.5 * (1 + Math.cos(Math.PI * progress));
}
