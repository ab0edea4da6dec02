import { join } from "node:path";
import { combineTrackers, type TrackerSource } from "./combine.js";
import { openJsonlTracker } from "./jsonl/tracker.js";
import { openTensorBoardTracker } from "./tensorboard/tracker.js";
import type { ResumePoint, Tracker } from "./tracker.js";
import type { WandbSettings } from "./wandb/settings.js";
import { openWandbTracker } from "./wandb/tracker.js";

export interface RunTrackersOptions extends ResumePoint {
  /** Also write TensorBoard's event files, to FOLDER/tensorboard. Default: true. */
  readonly tensorboard?: boolean;
  /** Also keep the run for W&B, in FOLDER/wandb; from `wandbSettings`. */
  readonly wandb?: WandbSettings;
  /** Trackers of one's own. */
  readonly trackers?: readonly TrackerSource[];
  /** Is told, once for each, which tracker fails and why. */
  readonly warn: (message: string) => void;
  /** Is told where the run can be seen. */
  readonly note?: (message: string) => void;
}

/**
 * All that keeps a run, as one tracker: FOLDER/metrics.jsonl and samples.jsonl, TensorBoard's files, W&B's, and the
 * caller's own. It never throws: what fails is said once and left out (`combineTrackers`).
 */
export function openRunTrackers(folder: string, options: RunTrackersOptions): Required<Tracker> {
  const { tensorboard = true, wandb, trackers = [], warn, note, resumeFrom } = options;
  const sources: TrackerSource[] = [async () => openJsonlTracker(folder, { resumeFrom })];
  if (tensorboard) sources.push(() => openTensorBoardTracker(join(folder, "tensorboard"), { resumeFrom }));
  if (wandb !== undefined) sources.push(async () => openWandbTracker(folder, wandb, { warn, note, resumeFrom }));
  return combineTrackers([...sources, ...trackers], { warn });
}
