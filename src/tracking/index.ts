export { PhaseClock, type Now } from "./clock.js";
export { combineTrackers, type CombineOptions, type TrackerSource } from "./combine.js";
export { openJsonlTracker } from "./jsonl/tracker.js";
export { exponentialMeans, WindowMean } from "./means.js";
export { sparkline } from "./progress/sparkline.js";
export type { MetricRecord, ResumePoint, RunOutcome, SampleRow, Tracker } from "./tracker.js";
