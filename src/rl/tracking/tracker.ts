import type { JsonObject } from "../../models/files/index.js";

/** Numbers by the field's names (docs/metrics.md): "reward", "objective/kl", "time/rollout". */
export type MetricRecord = Readonly<Record<string, number>>;

/** A prompt, what the model wrote, what that was worth, and whatever else is worth a column. */
export interface CompletionRow {
  readonly prompt: string;
  readonly completion: string;
  readonly reward: number;
  readonly [column: string]: string | number | boolean | null | undefined;
}

/** How a run ended, for services that show it. */
export type RunOutcome = "finished" | "failed";

/**
 * What watches or keeps a run. Only `log` must be there. Steps are whole numbers that do not fall; several records may
 * have the same step. A call that throws or rejects ends this tracker's part in the run, not the run (`combineTrackers`).
 */
export interface Tracker {
  /** Takes the numbers of one step. A number that is not finite is kept as far as the form allows. */
  log(step: number, record: MetricRecord): void | Promise<void>;
  /** Takes some of the completions of a step. */
  logCompletions?(step: number, rows: readonly CompletionRow[]): void | Promise<void>;
  /** Takes the run's settings, as resolved, before the first step. */
  logConfig?(settings: JsonObject): void | Promise<void>;
  /** Writes what waits and frees files and connections. */
  close?(outcome?: RunOutcome): void | Promise<void>;
}

/** Where a tracker of a run stands when it opens. */
export interface ResumePoint {
  /**
   * The last step of the checkpoint that the run continues from: what was recorded after it is taken away, so that no
   * step is there twice. Left out for a new run.
   */
  readonly resumeFromStep?: number;
}
