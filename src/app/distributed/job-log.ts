import { join } from "node:path";
import { errorMessage } from "../../core/errors.js";
import { AppendFile } from "../../rl/tracking/append-file.js";

export const JOB_LOG_FILE = "jobs.jsonl";

/** A line of jobs.jsonl; docs/rollouts.md lists the fields. */
export interface JobLogLine {
  /** Milliseconds since 1970 by the learner's clock, as all times: when the answer was received. */
  readonly time: number;
  readonly worker: string;
  /** A refused or failed job is repeated, and has another line. */
  readonly outcome: "used" | "refused" | "failed" | "error";
  /** When the job was added to the queue. */
  readonly queued: number;
  /** Time that the job took on the worker, which began it at `time` - 1000 `seconds`; absent for refused and failed ones. */
  readonly seconds?: number;
  /** Updates behind the weights of the job, and behind the newest weights when its answer was received. */
  readonly version: number;
  readonly step: number;
  /** Jobs without an answer, including this one. */
  readonly pending: number;
  /** Size of the job and of the answer as they travel. */
  readonly jobBytes: number;
  readonly answerBytes: number;
  readonly reason?: string;
  /** Micro-batch of an update; absent for rollouts. */
  readonly work?: "gradients";
}

/** Appends a line per answer to jobs.jsonl. A log that cannot be written is reported once and ends. */
export class JobLog {
  private file: AppendFile | undefined;

  constructor(
    folder: string,
    private readonly onWarning: (message: string) => void,
  ) {
    this.try(() => (this.file = AppendFile.open(join(folder, JOB_LOG_FILE))));
  }

  append(line: JobLogLine): void {
    this.try(() => this.file?.append(`${JSON.stringify(line)}\n`));
  }

  close(): void {
    this.file?.close();
  }

  private try(write: () => void): void {
    try {
      write();
    } catch (error) {
      this.file = undefined;
      this.onWarning(`${errorMessage(error)} The run continues without this log.`);
    }
  }
}
