/**
 * Everything that the dashboard's server and page exchange, as JSON. The page imports this file,
 * which therefore imports nothing else. Numbers that are not finite are null. Every text may come
 * from a model or from a foreign folder: show it as text, never as markup.
 */

import type { EpisodeRow } from "./api-episodes.js";

export type * from "./api-episodes.js";
export type * from "./api-jobs.js";
export type * from "./api-league.js";

/** `stopped` ended early but can be resumed; `unknown` cannot be read or has another layout. */
export type RunState = "running" | "finished" | "stopped" | "failed" | "unknown";

/** A run as a row of the list. */
export interface RunRow {
  /** Path of the run folder relative to the folder of runs, with "/". */
  readonly id: string;
  readonly name: string;
  readonly kind: "train" | "prompts" | "sft" | "preferences" | "unknown";
  readonly env: string | null;
  readonly model: string | null;
  readonly algorithm: string | null;
  readonly seed: number | null;
  readonly state: RunState;
  /** Why the folder or a part of it cannot be read; null if it can. */
  readonly problem: string | null;
  /** Last mean return (`rollout/ep_rew_mean`); for fine-tuning the last loss. */
  readonly result: number | null;
  /** Completed fraction, 0 to 1. */
  readonly progress: number | null;
  readonly updates: number;
  readonly turns: number | null;
  readonly episodes: number | null;
  /** Seconds spent in rollouts and updates. */
  readonly seconds: number | null;
  /** Commit of the code, where known. */
  readonly commit: string | null;
  /** Milliseconds since 1970. */
  readonly startedMs: number | null;
  readonly changedMs: number | null;
  readonly tags: readonly string[];
  readonly note: string;
  /** The sweep that the run belongs to. */
  readonly sweep: string | null;
  readonly hasRollouts: boolean;
  /** Whether its rollouts were sampled by workers. */
  readonly hasJobs: boolean;
  /** Whether it trains in self-play. */
  readonly isSelfPlay: boolean;
}

/** A sweep as a row of the list. */
export interface SweepRow {
  readonly id: string;
  readonly name: string;
  readonly problem: string | null;
  readonly env: string | null;
  readonly method: string | null;
  readonly metric: string | null;
  readonly goal: "maximize" | "minimize";
  readonly isFinished: boolean;
  /** Names of the searched settings: the axes of parallel coordinates. */
  readonly settings: readonly string[];
  /** From best to worst. */
  readonly trials: readonly TrialRow[];
}

/** A trial of a sweep. */
export interface TrialRow {
  readonly trial: number;
  readonly settings: Readonly<Record<string, string | number | boolean | null>>;
  readonly rung: number;
  readonly value: number | null;
  readonly standardError: number | null;
  readonly failure: string | null;
  /** Ids of its runs. */
  readonly runs: readonly string[];
}

/** `GET /api/runs` */
export interface RunList {
  /** Name of the folder of runs. */
  readonly root: string;
  readonly runs: readonly RunRow[];
  readonly sweeps: readonly SweepRow[];
  /**
   * Whether the page is a report file, which has no server: no live events, no play, no control.
   */
  readonly isReport: boolean;
}

/** `GET /api/runs/:run` */
export interface RunDetail {
  readonly row: RunRow;
  /** config.json. */
  readonly config: Readonly<Record<string, unknown>>;
  /** Names of all recorded metrics. */
  readonly metrics: readonly string[];
  /** Returns of other policies in the environment: reference lines of `rollout/ep_rew_mean`. */
  readonly references: readonly { readonly name: string; readonly y: number }[];
  /** The last value of each metric. */
  readonly last: Readonly<Record<string, number | null>>;
  readonly phases: Phases;
  readonly log: readonly LogEntry[];
  readonly checkpoints: readonly Checkpoint[];
  /** Settings that can be changed while the run trains; empty for a run that does not. */
  readonly changeable: readonly ChangeableSetting[];
}

/** Where the time of a run goes, in seconds over all updates, and what it uses. */
export interface Phases {
  readonly rollout: number;
  readonly update: number;
  /** Logging and everything else in the steps' time. */
  readonly other: number;
  readonly turnsPerSecond: number | null;
  /** Resident memory of the training process in bytes, at the last record of it. */
  readonly memoryBytes: number | null;
}

/** A checkpoint, or the adapter at the end of a run, that can be played. */
export interface Checkpoint {
  /** "latest", "adapter", or the number of updates. */
  readonly name: string;
  readonly updates: number | null;
}

export interface ChangeableSetting {
  readonly name: string;
  readonly description: string;
  readonly value: number | null;
}

/** A line of a run's log.jsonl: starts, ends, health findings and control. */
export interface LogEntry {
  readonly timeMs: number;
  /** Updates made by then. */
  readonly step: number;
  readonly kind: "start" | "end" | "warning" | "control" | "resources" | "unknown";
  /** What happened, as a sentence. */
  readonly message: string;
  /** For warnings: page of the documentation that explains it, such as "metrics". */
  readonly page?: string;
  /** For control: the id of the request, and whether it was carried out. */
  readonly request?: string;
  readonly ok?: boolean;
}

/** X axis of a series. */
export type XAxis = "turns" | "updates" | "seconds" | "episodes";

/**
 * `GET /api/runs/:run/series?name=a&name=b&x=turns&points=800&from=&to=`:
 * metrics, downsampled to at most `points` points. `from` and `to` limit x, so that a zoomed view
 * gets its own points.
 */
export interface SeriesResponse {
  readonly run: string;
  readonly x: XAxis;
  readonly series: readonly MetricSeries[];
}

/**
 * A metric over x. Where points were merged, `y` is their mean, and `min` and `max` are their
 * range.
 */
export interface MetricSeries {
  readonly name: string;
  readonly x: readonly number[];
  readonly y: readonly (number | null)[];
  readonly min?: readonly (number | null)[];
  readonly max?: readonly (number | null)[];
  /** Number of records before downsampling. */
  readonly count: number;
}

/** `GET /api/metrics`: the groups of docs/metrics.md, in its order. */
export interface MetricGroup {
  readonly title: string;
  readonly metrics: readonly MetricInfo[];
}

/**
 * What docs/metrics.md has about metrics. Texts are Markdown with `code` and [links](page.md) only.
 */
export interface MetricInfo {
  /** Names of one row of the table; NAME in a name stands for any name. */
  readonly names: readonly string[];
  readonly meaning: string;
  readonly healthy: string;
  readonly unhealthy: string;
}

/**
 * `GET /api/events?run=ID&run=ID`: server-sent events with these as data (event name "message").
 * Each has an id; EventSource sends the last one when it reconnects, and events since then follow,
 * so a page that slept misses nothing. Without `run`, changes of the list only.
 */
export type LiveEvent =
  /** Rows that are new or changed. */
  | { readonly type: "runs"; readonly rows: readonly RunRow[]; readonly removed: readonly string[] }
  /**
   * New records of metrics.jsonl (at most the last 1,000; `isGap` asks to load the series again).
   */
  | {
      readonly type: "metrics";
      readonly run: string;
      readonly records: readonly Readonly<Record<string, number | null>>[];
      readonly isGap: boolean;
    }
  | { readonly type: "episodes"; readonly run: string; readonly episodes: readonly EpisodeRow[] }
  | { readonly type: "log"; readonly run: string; readonly entries: readonly LogEntry[] }
  /** Workers have answered; the list of jobs is to be loaded again. */
  | { readonly type: "jobs"; readonly run: string };

/** `PUT /api/runs/:run/notes` */
export interface NotesRequest {
  readonly tags: readonly string[];
  readonly note: string;
}

/**
 * `POST /api/runs/:run/control`; answered with the id under which the outcome appears in the log.
 */
export type ControlRequest =
  | { readonly action: "checkpoint" }
  | { readonly action: "stop" }
  | { readonly action: "set"; readonly name: string; readonly value: number };

export interface ControlResponse {
  readonly request: string;
}

/** Body of every error answer. */
export interface ApiError {
  readonly code: string;
  readonly message: string;
}

/**
 * JSON of the element `<script type="application/json" id="report">` of a report file: answers by
 * the path of their request.
 */
export interface ReportData {
  readonly version: 1;
  readonly createdMs: number;
  /**
   * Keys such as "/api/runs" or "/api/runs/blackjack/series?x=turns": URL-encoded, as the page
   * would request them.
   */
  readonly answers: Readonly<Record<string, unknown>>;
}
