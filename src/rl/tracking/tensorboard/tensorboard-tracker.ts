import type { JsonObject } from "../../../models/files/index.js";
import type { MetricRecord, ResumePoint, RunOutcome, CompletionRow, Tracker } from "../tracker.js";
import { EventFile } from "./event-file.js";
import { SessionLog_SessionStatus } from "./event_pb.js";
import {
  fenceCode,
  createCompletionTable,
  createScalarSummary,
  createSessionEnd,
  createSessionStart,
  createTextSummary,
} from "./summaries.js";

/** Options of `openTensorBoardTracker`. */
export interface TensorBoardOptions extends ResumePoint {
  /** Returns the time of events in milliseconds since 1970. Default Date.now. */
  readonly now?: () => number;
}

/**
 * Writes a run for `tensorboard --logdir FOLDER`: metrics under SCALARS, completions and settings under TEXT, and settings as a
 * row of HPARAMS. With `resumeFromStep`, a new file makes TensorBoard discard later steps of older files.
 * @throws FILE_WRITE_FAILED
 */
export function openTensorBoardTracker(folder: string, options: TensorBoardOptions = {}): Required<Tracker> {
  return new TensorBoardTracker(folder, options);
}

class TensorBoardTracker implements Required<Tracker> {
  private readonly file: EventFile;
  private readonly now: () => number;
  private lastStep = 0;

  constructor(folder: string, { resumeFromStep, now = Date.now }: TensorBoardOptions) {
    this.now = now;
    this.file = EventFile.create(folder, now);
    if (resumeFromStep === undefined) return;
    this.lastStep = resumeFromStep;
    this.file.write(resumeFromStep + 1, { sessionLog: { status: SessionLog_SessionStatus.START } });
  }

  log(step: number, record: MetricRecord): void {
    this.lastStep = step;
    this.file.write(step, { summary: createScalarSummary(record) });
  }

  logCompletions(step: number, rows: readonly CompletionRow[]): void {
    if (rows.length > 0) this.file.write(step, { summary: createCompletionTable("samples", rows) });
  }

  logConfig(settings: JsonObject): void {
    this.file.write(this.lastStep, {
      summary: createTextSummary("config", fenceCode(JSON.stringify(settings, null, 2), "json")),
    });
    this.file.write(this.lastStep, { summary: createSessionStart(settings, this.now() / 1000) });
  }

  close(outcome: RunOutcome = "finished"): void {
    if (this.file.closed) return;
    this.file.write(this.lastStep, { summary: createSessionEnd(outcome, this.now() / 1000) });
    this.file.close();
  }
}
