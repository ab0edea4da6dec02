import type { JsonObject } from "../files/index.js";
import type { MetricRecord, RunOutcome, SampleRow, Tracker } from "./tracker.js";

/** A tracker, or how to open one. */
export type TrackerSource = Tracker | (() => Tracker | Promise<Tracker>);

export interface CombineOptions {
  /** Is told, once for each tracker that fails, what went wrong. */
  readonly warn: (message: string) => void;
}

/**
 * One tracker in place of several. It never throws: a tracker that cannot be opened, or that fails at a call, is said
 * once and left out from then on, and the others go on. Calls are carried out in their order, whether or not they are awaited.
 */
export function combineTrackers(sources: readonly TrackerSource[], { warn }: CombineOptions): Required<Tracker> {
  return new CombinedTracker(sources, warn);
}

class CombinedTracker implements Required<Tracker> {
  private open: readonly Tracker[] = [];
  private tail: Promise<void>;

  constructor(
    sources: readonly TrackerSource[],
    private readonly warn: (message: string) => void,
  ) {
    this.tail = this.openAll(sources);
  }

  log(step: number, record: MetricRecord): Promise<void> {
    return this.each((tracker) => tracker.log(step, record));
  }

  samples(step: number, rows: readonly SampleRow[]): Promise<void> {
    return this.each((tracker) => tracker.samples?.(step, rows));
  }

  config(settings: JsonObject): Promise<void> {
    return this.each((tracker) => tracker.config?.(settings));
  }

  async close(outcome?: RunOutcome): Promise<void> {
    await this.each((tracker) => tracker.close?.(outcome));
    this.open = [];
  }

  private async openAll(sources: readonly TrackerSource[]): Promise<void> {
    const opened = await Promise.all(
      sources.map(async (source) => {
        try {
          return typeof source === "function" ? await source() : source;
        } catch (error) {
          this.say(error);
        }
      }),
    );
    this.open = opened.filter((tracker) => tracker !== undefined);
  }

  private each(call: (tracker: Tracker) => void | Promise<void>): Promise<void> {
    this.tail = this.tail.then(async () => {
      const failed = await Promise.all(this.open.map(async (tracker) => this.fails(tracker, call)));
      this.open = this.open.filter((_, index) => !failed[index]);
    });
    return this.tail;
  }

  private async fails(tracker: Tracker, call: (tracker: Tracker) => void | Promise<void>): Promise<boolean> {
    try {
      await call(tracker);
      return false;
    } catch (error) {
      this.say(error);
      // It has said what is wrong with it; that it cannot be closed either is no news.
      await Promise.resolve()
        .then(() => tracker.close?.("failed"))
        .catch(() => undefined);
      return true;
    }
  }

  private say(error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    this.warn(`${message} Training goes on without this record.`);
  }
}
