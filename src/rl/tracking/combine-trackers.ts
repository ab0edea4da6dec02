import { errorMessage } from "../../core/errors.js";
import type { Tracker } from "./tracker.js";

/** A tracker, or a function that opens one. */
export type TrackerSource = Tracker | (() => Tracker | Promise<Tracker>);

/** Options of `combineTrackers`. */
export interface CombineTrackersOptions {
  /** Receives one warning for each tracker that fails. */
  readonly onWarning: (message: string) => void;
}

/**
 * Combines trackers into one that never throws: a tracker that fails to open or in a call is
 * reported once and dropped. Calls run in order, whether or not they are awaited.
 */
export function combineTrackers(
  sources: readonly TrackerSource[],
  { onWarning }: CombineTrackersOptions,
): Required<Tracker> {
  let active: readonly Tracker[] = [];
  const reportFailure = (error: unknown): undefined => {
    onWarning(`${errorMessage(error)} Training continues without this tracker.`);
  };

  /** Returns the trackers for which the call did not fail. */
  const callAll = async <Source>(items: readonly Source[], call: (item: Source) => Promise<Tracker>) => {
    const results = await Promise.all(items.map(async (item) => call(item).catch(reportFailure)));
    return results.filter((tracker) => tracker !== undefined);
  };
  let queue: Promise<void> = callAll(sources, async (source) =>
    typeof source === "function" ? source() : source,
  ).then((opened) => void (active = opened));
  const enqueue = (call: (tracker: Tracker) => void | Promise<void>): Promise<void> => {
    queue = queue.then(async () => {
      active = await callAll(active, async (tracker) => {
        try {
          await call(tracker);
        } catch (error) {
          // A second failure of the same tracker is not reported.
          await (async () => tracker.close?.("failed"))().catch(() => {});
          throw error;
        }
        return tracker;
      });
    });
    return queue;
  };
  return {
    log: (step, record) => enqueue((tracker) => tracker.log(step, record)),
    logCompletions: (step, rows) => enqueue((tracker) => tracker.logCompletions?.(step, rows)),
    logRollout: (step, record) => enqueue((tracker) => tracker.logRollout?.(step, record)),
    logConfig: (settings) => enqueue((tracker) => tracker.logConfig?.(settings)),
    close: async (outcome) => {
      await enqueue((tracker) => tracker.close?.(outcome));
      active = [];
    },
  };
}
