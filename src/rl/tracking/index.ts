export { combineTrackers, type CombineTrackersOptions, type TrackerSource } from "./combine-trackers.js";
export { readMetrics } from "./jsonl/read-metrics.js";
export { openRunTrackers, type RunTrackersOptions } from "./open-run-trackers.js";
export type { MetricRecord, ResumePoint, RunOutcome, CompletionRow, Tracker } from "./tracker.js";
