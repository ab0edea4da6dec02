import { openRunTrackers, type ResumePoint, type Tracker, type TrackerSource } from "../../rl/tracking/index.js";
import type { EpisodeJudge } from "../judge/episode-judge.js";
import { openWandbTracker, type WandbConfig } from "../tracking/index.js";
import { maxRolloutBytes } from "../../rl/train/index.js";
import { openCurveTracker } from "./run-curve.js";
import type { TrainConfig } from "./run-settings.js";
import { loadTracker } from "./load-tracker.js";

export interface OpenTrackersOptions extends ResumePoint {
  readonly wandb?: WandbConfig;
  readonly trackers?: readonly TrackerSource[];
  /** Its metrics are logged with those of the run. */
  readonly judge?: EpisodeJudge;
  readonly onWarning: (message: string) => void;
  readonly onInfo?: (message: string) => void;
}

/**
 * Opens the trackers of a run: its files, its curve, W&B, the module of the setting `tracker`, and
 * additional ones. @throws as `loadTracker`
 */
export async function openTrackers(
  folder: string,
  config: Pick<TrainConfig, "saveSteps"> &
    Partial<
      Pick<
        TrainConfig,
        "algorithm" | "tensorboard" | "tracker" | "env" | "envOptions" | "rollouts" | "maxRolloutMegabytes"
      >
    >,
  { wandb, trackers = [], judge, onWarning, onInfo, resumeFromStep }: OpenTrackersOptions,
): Promise<Required<Tracker>> {
  const { tensorboard, tracker } = config;
  const sources: TrackerSource[] = [async () => openCurveTracker(folder, config, { resumeFromStep })];
  if (wandb !== undefined)
    sources.push(async () => openWandbTracker(folder, wandb, { onWarning, onInfo, resumeFromStep }));
  if (tracker !== undefined) sources.push(await loadTracker(tracker, folder, { resumeFromStep }));
  const opened = openRunTrackers(folder, {
    tensorboard,
    maxRolloutBytes: config.rollouts && maxRolloutBytes(config),
    trackers: [...sources, ...trackers],
    onWarning,
    resumeFromStep,
  });
  if (judge === undefined) return opened;
  return { ...opened, log: (step, record) => opened.log(step, { ...record, ...judge.takeMetrics() }) };
}
