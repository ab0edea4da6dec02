import { checkOptions } from "../../core/settings.js";
import { fs } from "#platform";
import { combineTrackers, type TrackerSource } from "./combine-trackers.js";
import { openJsonlTracker } from "./jsonl/jsonl-tracker.js";
import { openRolloutTracker } from "./rollouts/rollout-file.js";
import type { ResumePoint, Tracker } from "./tracker.js";

/** Options of `openRunTrackers`. */
export interface RunTrackersOptions extends ResumePoint {
  /** Also write TensorBoard event files to FOLDER/tensorboard. Default true. */
  readonly tensorboard?: boolean;
  /** Write recorded episodes to rollouts.jsonl, thinned beyond this many bytes. Default off. */
  readonly maxRolloutBytes?: number;
  /** Additional trackers. */
  readonly trackers?: readonly TrackerSource[];
  /** Receives one warning for each tracker that fails. */
  readonly onWarning: (message: string) => void;
}

/**
 * Opens the trackers of a run folder and combines them: metrics.jsonl, recorded episodes,
 * TensorBoard event files, and additional ones. Never throws; a tracker that fails is reported once
 * and dropped.
 */
export function openRunTrackers(folder: string, options: RunTrackersOptions): Required<Tracker> {
  checkOptions("openRunTrackers", options, {
    tensorboard: true,
    maxRolloutBytes: true,
    trackers: true,
    onWarning: Function,
    resumeFromStep: true,
  });
  const { tensorboard = true, trackers = [], maxRolloutBytes, onWarning, resumeFromStep } = options;
  const sources: TrackerSource[] = [async () => openJsonlTracker(folder, { resumeFromStep })];
  if (tensorboard)
    sources.push(async () => {
      const { openTensorBoardTracker } = await import("./tensorboard/tensorboard-tracker.js");
      return openTensorBoardTracker(fs.join(folder, "tensorboard"), { resumeFromStep });
    });
  if (maxRolloutBytes !== undefined)
    sources.push(async () => openRolloutTracker(folder, { maxBytes: maxRolloutBytes, resumeFromStep }));
  return combineTrackers([...sources, ...trackers], { onWarning });
}
