import { join } from "node:path";
import { errorMessage } from "../../core/errors.js";
import { AppendFile } from "../../rl/tracking/index.js";
import { JOB_LOG_FILE, type JobLogLine } from "./job-log-line.js";

/**
 * Appends a line per answer to jobs.jsonl. A log that cannot be written is reported once and ends.
 */
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
