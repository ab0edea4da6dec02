/** Answers of a run's workers, as JSON between the dashboard's server and page. */

/** A job that a worker answered: a line of jobs.jsonl. */
export interface Job {
  /** Milliseconds since 1970 by the learner's clock, as all times: when the answer was received. */
  readonly time: number;
  readonly worker: string;
  /** A refused or failed job is repeated and appears again; after an error the run ends. */
  readonly outcome: "used" | "refused" | "failed" | "error";
  /** When the job was added to the queue. */
  readonly queued: number;
  /** Time that the job took on the worker; null for refused and failed ones. */
  readonly seconds: number | null;
  /** Updates behind the weights of the job, and behind the newest weights when its answer was received. */
  readonly version: number;
  readonly step: number;
  /** Jobs without an answer, including this one. */
  readonly pending: number;
  readonly reason: string | null;
  /** A micro-batch of an update; null for a part of a rollout. */
  readonly work: "gradients" | null;
}

/** `GET /api/runs/:run/jobs` */
export interface JobList {
  /** The newest ones, by time. */
  readonly jobs: readonly Job[];
  /** Lines among them that cannot be read. */
  readonly numUnreadable: number;
}
