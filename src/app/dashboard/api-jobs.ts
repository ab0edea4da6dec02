/** Answers of a run's workers, as JSON between the dashboard's server and page. */

import type { JobLogLine } from "../distributed/job-log-line.js";

/** A job that a worker answered. */
export type Job = Omit<JobLogLine, "jobBytes" | "answerBytes">;

/** `GET /api/runs/:run/jobs` */
export interface JobList {
  /** The newest ones, by time. */
  readonly jobs: readonly Job[];
  /** Lines among them that cannot be read. */
  readonly numUnreadable: number;
}
