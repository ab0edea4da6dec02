export { combineTrackers, type CombineTrackersOptions, type TrackerSource } from "./combine-trackers.js";
export { readMetrics, METRICS_FILE, parseRecord } from "./jsonl/read-metrics.js";
export { openRunTrackers, type RunTrackersOptions } from "./open-run-trackers.js";
export type { MetricRecord, ResumePoint, RunOutcome, CompletionRow, Tracker } from "./tracker.js";
export { AppendFile } from "./append-file.js";
export { ROLLOUTS_FILE, type RolloutRecord, decodeChunk, parseRolloutLine } from "./rollouts/chunk.js";
export type {
  EpisodeDetail,
  EpisodeRow,
  RecordedAlternative,
  RecordedEnd,
  TurnDetail,
  RecordedVocabulary,
} from "./rollouts/rollout-record.js";
