import { join } from "node:path";
import { combineTrackers, type TrackerSource } from "./combine-trackers.js";
import { openJsonlTracker } from "./jsonl/jsonl-tracker.js";
import { openTensorBoardTracker } from "./tensorboard/tensorboard-tracker.js";
import type { ResumePoint, Tracker } from "./tracker.js";

export interface RunTrackersOptions extends ResumePoint {
  /** Also write TensorBoard's event files, to FOLDER/tensorboard. Default: true. */
  readonly tensorboard?: boolean;
  /** Trackers of one's own. */
  readonly trackers?: readonly TrackerSource[];
  /** Is told, once for each, which tracker fails and why. */
  readonly onWarning: (message: string) => void;
}

/**
 * All that keeps a run, as one tracker: FOLDER/metrics.jsonl and samples.jsonl, TensorBoard's files, W&B's, and the
 * caller's own. It never throws: what fails is said once and left out (`combineTrackers`).
 */
export function openRunTrackers(folder: string, options: RunTrackersOptions): Required<Tracker> {
  const { tensorboard = true, trackers = [], onWarning, resumeFromStep } = options;
  const sources: TrackerSource[] = [async () => openJsonlTracker(folder, { resumeFromStep })];
  if (tensorboard) sources.push(() => openTensorBoardTracker(join(folder, "tensorboard"), { resumeFromStep }));
  return combineTrackers([...sources, ...trackers], { onWarning });
}
