export { isDrawable } from "./charts/axis.js";
export {
  renderLearningCurve,
  type CurveReference,
  type CurveSeries,
  type LearningCurve,
} from "./charts/learning-curve.js";
export { computeSeedBand, type SeedCurve } from "./charts/seed-band.js";
export { renderDotChart, type Dot, type DotChart, type DotSeries } from "./charts/dot-chart.js";
export { MEAN_RETURN, readMetricCurve } from "./charts/metric-curve.js";
export { LiveProgress, type LiveProgressOptions } from "./progress/live-progress.js";
export type { ProgressOutput } from "./progress/progress-line.js";
export type { ProgressState } from "./progress/training-progress.js";
export { renderSparkline } from "./progress/sparkline.js";
export { resolveWandbConfig, type WandbMode, type WandbOptions, type WandbConfig } from "./wandb/wandb-config.js";
export { openWandbTracker, type WandbTrackerOptions } from "./wandb/wandb-tracker.js";
