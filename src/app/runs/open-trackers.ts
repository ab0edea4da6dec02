import { openRunTrackers, type ResumePoint, type Tracker, type TrackerSource } from "../../rl/tracking/index.js";
import { openWandbTracker, type WandbConfig } from "../tracking/index.js";
import { loadTracker } from "./load-tracker.js";

interface OpenTrackersOptions extends ResumePoint {
  readonly wandb?: WandbConfig;
  readonly trackers?: readonly TrackerSource[];
  readonly onWarning: (message: string) => void;
  readonly onInfo?: (message: string) => void;
}

/** Opens the trackers of a run: its files, W&B, the module of the setting `tracker`, and additional ones. @throws as `loadTracker` */
export async function openTrackers(
  folder: string,
  { tensorboard, tracker }: { readonly tensorboard?: boolean; readonly tracker?: string },
  { wandb, trackers = [], onWarning, onInfo, resumeFromStep }: OpenTrackersOptions,
): Promise<Required<Tracker>> {
  const sources: TrackerSource[] = [];
  if (wandb !== undefined)
    sources.push(async () => openWandbTracker(folder, wandb, { onWarning, onInfo, resumeFromStep }));
  if (tracker !== undefined) sources.push(await loadTracker(tracker, folder, { resumeFromStep }));
  return openRunTrackers(folder, { tensorboard, trackers: [...sources, ...trackers], onWarning, resumeFromStep });
}
