import { invalidArgument } from "../../core/errors.js";
import type { MaybePromise } from "../../core/maybe-promise.js";
import type { ResumePoint, Tracker, TrackerSource } from "../../rl/tracking/index.js";
import { importModule } from "./import-module.js";

/** Default export of a tracker module: a tracker, or a function that opens one for a run folder. */
export type TrackerModuleExport = Tracker | ((folder: string, options: ResumePoint) => MaybePromise<Tracker>);

/**
 * Loads a tracker from a JavaScript or TypeScript module.
 * @throws FILE_NOT_FOUND, FILE_READ_FAILED for a module that cannot be imported, INVALID_ARGUMENT
 * for one without a tracker as its default export.
 */
export async function loadTracker(path: string, folder: string, options: ResumePoint): Promise<TrackerSource> {
  const { default: exported } = await importModule(path, "The tracker");
  if (typeof exported === "function") {
    const open = exported as Extract<TrackerModuleExport, (...args: never) => unknown>;
    return async () => open(folder, options);
  }
  if (typeof exported === "object" && exported !== null && typeof (exported as Partial<Tracker>).log === "function")
    return exported as Tracker;
  throw invalidArgument(
    `The default export of ${path} must be a tracker with a method log(step, record), or a function (folder, options) that returns one.`,
  );
}
