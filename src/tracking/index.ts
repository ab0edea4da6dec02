export {
  learningCurveSvg,
  type CurveReference,
  type CurveSeries,
  type LearningCurve,
} from "./charts/learning-curve.js";
export { seedBand, type SeedCurve } from "./charts/seed-band.js";
export { dotChartSvg, type Dot, type DotChart, type DotSeries } from "./charts/dot-chart.js";
export { PhaseClock, type Now } from "./clock.js";
export { combineTrackers, type CombineOptions, type TrackerSource } from "./combine.js";
export { readMetrics } from "./jsonl/read.js";
export { MEAN_RETURN, metricCurve } from "./jsonl/metric-curve.js";
export { openJsonlTracker } from "./jsonl/tracker.js";
export { exponentialMeans, WindowMean } from "./means.js";
export { LiveProgress, type LiveProgressOptions, type ProgressOutput } from "./progress/live-progress.js";
export type { ProgressState } from "./progress/progress-line.js";
export { sparkline } from "./progress/sparkline.js";
export { openRunTrackers, type RunTrackersOptions } from "./run-trackers.js";
export { openTensorBoardTracker, type TensorBoardOptions } from "./tensorboard/tracker.js";
export type { MetricRecord, ResumePoint, RunOutcome, SampleRow, Tracker } from "./tracker.js";
export { wandbSettings, type WandbMode, type WandbOptions, type WandbSettings } from "./wandb/settings.js";
export { openWandbTracker, type WandbTrackerOptions } from "./wandb/tracker.js";
