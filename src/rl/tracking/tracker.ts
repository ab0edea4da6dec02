import type { RolloutRecord } from "./rollouts/chunk.js";
import type { JsonObject } from "../../core/json.js";

/** Metrics by name (docs/metrics.md), such as "reward", "objective/kl", "time/rollout". */
export type MetricRecord = Readonly<Record<string, number>>;

/** A sampled completion with its prompt and reward, and any further columns. */
export interface CompletionRow {
  readonly prompt: string;
  readonly completion: string;
  readonly reward: number;
  readonly [column: string]: string | number | boolean | null | undefined;
}

/** How a run ended. */
export type RunOutcome = "finished" | "failed";

/**
 * Records a run. Only `log` is required. Steps are integers that do not decrease; several records
 * may share a step. A call that throws or rejects ends tracking by this tracker, not the run
 * (`combineTrackers`).
 */
export interface Tracker {
  /** Records the metrics of a step. Values may be NaN or infinite. */
  log(step: number, record: MetricRecord): void | Promise<void>;
  /** Records some of the completions of a step. */
  logCompletions?(step: number, rows: readonly CompletionRow[]): void | Promise<void>;
  /** Records episodes of a step with their tokens. */
  logRollout?(step: number, record: RolloutRecord): void | Promise<void>;
  /** Records the run's resolved settings, before the first step. */
  logConfig?(settings: JsonObject): void | Promise<void>;
  /** Flushes pending records and releases files and connections. Can be called more than once. */
  close?(outcome?: RunOutcome): void | Promise<void>;
}

/** Step after which a resumed run continues its files. */
export interface ResumePoint {
  /**
   * Last step of the checkpoint that the run resumes from; later records are removed. Omitted for a
   * new run.
   */
  readonly resumeFromStep?: number;
}
