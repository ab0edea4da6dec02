import type { JsonObject } from "../../models/files/index.js";
import type { MetricRecord, RunOutcome, CompletionRow, Tracker } from "./tracker.js";

/** A tracker, or a function that opens one. */
export type TrackerSource = Tracker | (() => Tracker | Promise<Tracker>);

/** Options of `combineTrackers`. */
export interface CombineTrackersOptions {
  /** Receives one warning for each tracker that fails. */
  readonly onWarning: (message: string) => void;
}

/**
 * Combines trackers into one that never throws: a tracker that fails to open or in a call is reported once and dropped. Calls
 * run in order, whether or not they are awaited.
 */
export function combineTrackers(
  sources: readonly TrackerSource[],
  { onWarning }: CombineTrackersOptions,
): Required<Tracker> {
  return new CombinedTracker(sources, onWarning);
}

class CombinedTracker implements Required<Tracker> {
  private activeTrackers: readonly Tracker[] = [];
  private queue: Promise<void>;

  constructor(
    sources: readonly TrackerSource[],
    private readonly onWarning: (message: string) => void,
  ) {
    this.queue = this.openAll(sources);
  }

  log(step: number, record: MetricRecord): Promise<void> {
    return this.enqueue((tracker) => tracker.log(step, record));
  }

  logCompletions(step: number, rows: readonly CompletionRow[]): Promise<void> {
    return this.enqueue((tracker) => tracker.logCompletions?.(step, rows));
  }

  logConfig(settings: JsonObject): Promise<void> {
    return this.enqueue((tracker) => tracker.logConfig?.(settings));
  }

  async close(outcome?: RunOutcome): Promise<void> {
    await this.enqueue((tracker) => tracker.close?.(outcome));
    this.activeTrackers = [];
  }

  private async openAll(sources: readonly TrackerSource[]): Promise<void> {
    const opened = await Promise.all(
      sources.map(async (source) => {
        try {
          return typeof source === "function" ? await source() : source;
        } catch (error) {
          this.reportFailure(error);
        }
      }),
    );
    this.activeTrackers = opened.filter((tracker) => tracker !== undefined);
  }

  private enqueue(call: (tracker: Tracker) => void | Promise<void>): Promise<void> {
    this.queue = this.queue.then(async () => {
      const failed = await Promise.all(this.activeTrackers.map(async (tracker) => this.callTracker(tracker, call)));
      this.activeTrackers = this.activeTrackers.filter((_, index) => !failed[index]);
    });
    return this.queue;
  }

  private async callTracker(tracker: Tracker, call: (tracker: Tracker) => void | Promise<void>): Promise<boolean> {
    try {
      await call(tracker);
      return false;
    } catch (error) {
      this.reportFailure(error);
      // The failure is already reported; a second one from close adds nothing.
      await Promise.resolve()
        .then(() => tracker.close?.("failed"))
        .catch(() => undefined);
      return true;
    }
  }

  private reportFailure(error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    this.onWarning(`${message} Training continues without this tracker.`);
  }
}
