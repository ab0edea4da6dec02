import { checkOptions } from "../../core/settings.js";
import { errorMessage, invalidArgument, LlamaGymError } from "../../core/errors.js";
import { describeValue } from "../../core/format.js";
import type { MaybePromise } from "../../core/maybe-promise.js";
import { withTimeout } from "../../core/with-timeout.js";
import type { Tracker } from "./tracker.js";

/** A tracker, or a function that opens one. */
export type TrackerSource = Tracker | (() => Tracker | Promise<Tracker>);

/** Options of `combineTrackers`. */
export interface CombineTrackersOptions {
  /** Receives one warning for each tracker that fails. */
  readonly onWarning: (message: string) => void;
  /** Seconds after which a call that did not settle has failed. Default 300; 0 waits forever. */
  readonly timeoutSeconds?: number;
}

/**
 * Combines trackers into one that never throws: a tracker that fails to open or in a call, or does
 * not answer in time, is reported once and dropped. Calls run in order, whether or not they are
 * awaited.
 */
export function combineTrackers(sources: readonly TrackerSource[], options: CombineTrackersOptions): Required<Tracker> {
  checkOptions("combineTrackers", options, { onWarning: Function, timeoutSeconds: true });
  const { onWarning, timeoutSeconds = 300 } = options;
  let active: readonly Tracker[] = [];
  const reportFailure = (error: unknown): undefined => {
    onWarning(`${describeFailure(error)} Training continues without this tracker.`);
  };
  const inTime = async <Result>(call: () => MaybePromise<Result>): Promise<Result> =>
    withTimeout(call, timeoutSeconds, () => new Error(`it did not answer within ${timeoutSeconds} s`));

  /** Returns the trackers for which the call did not fail. */
  const callAll = async <Source>(items: readonly Source[], call: (item: Source) => Promise<Tracker>) => {
    const results = await Promise.all(items.map(async (item) => call(item).catch(reportFailure)));
    return results.filter((tracker) => tracker !== undefined);
  };
  let queue: Promise<void> = callAll(sources, async (source) => {
    const tracker: Partial<Tracker> | null | undefined =
      typeof source === "function" ? await inTime<Partial<Tracker>>(source) : source;
    if (typeof tracker?.log !== "function")
      throw invalidArgument(`A tracker must have a method log(step, record), got ${describeValue(tracker)}.`);
    return tracker as Tracker;
  }).then((opened) => void (active = opened));
  const enqueue = (call: (tracker: Tracker) => void | Promise<void>): Promise<void> => {
    queue = queue.then(async () => {
      active = await callAll(active, async (tracker) => {
        try {
          await inTime(() => call(tracker));
        } catch (error) {
          // A second failure of the same tracker is not reported.
          await inTime(() => tracker.close?.("failed")).catch(() => {});
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

/** Describes a failure as a sentence; the errors of the package name their tracker themselves. */
function describeFailure(error: unknown): string {
  const message = errorMessage(error);
  const sentence = /[.!?]$/.test(message) ? message : `${message}.`;
  return error instanceof LlamaGymError ? sentence : `A tracker failed: ${sentence}`;
}
