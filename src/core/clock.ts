/** Milliseconds since some moment; `performance.now` unless a test has its own. */
export type Clock = () => number;

/**
 * Adds up how long the phases of an update take.
 *
 *     const episodes = await clock.time("rollout", () => collect());
 *     tracker.log(step, { ...clock.lap() });     // { "time/rollout": 2.41, "step_time": 2.43 }
 */
export class PhaseClock {
  private readonly seconds = new Map<string, number>();
  private lapStart: number;

  constructor(private readonly now: Clock = () => performance.now()) {
    this.lapStart = now();
  }

  /** Does `work` and adds its time to the phase, also when it throws. Phases inside one another both count. */
  async time<T>(phase: string, work: () => T | Promise<T>): Promise<T> {
    const start = this.now();
    try {
      return await work();
    } finally {
      this.seconds.set(phase, (this.seconds.get(phase) ?? 0) + (this.now() - start) / 1000);
    }
  }

  /** Seconds of each phase as "time/PHASE", and of everything since the last lap as "step_time"; then starts anew. */
  lap(): Record<string, number> {
    const end = this.now();
    const record: Record<string, number> = { step_time: (end - this.lapStart) / 1000 };
    for (const [phase, seconds] of this.seconds) record[`time/${phase}`] = seconds;
    this.seconds.clear();
    this.lapStart = end;
    return record;
  }
}
