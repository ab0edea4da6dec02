import type { JsonObject } from "../../files/index.js";
import type { MetricRecord, ResumePoint, RunOutcome, SampleRow, Tracker } from "../tracker.js";
import { EventFile } from "./event-file.js";
import { SessionLog_SessionStatus } from "./event_pb.js";
import { fenced, sampleTable, scalars, sessionEnd, sessionStart, text } from "./summaries.js";

export interface TensorBoardOptions extends ResumePoint {
  /** Milliseconds since 1970; the time of events. Default: Date.now. */
  readonly now?: () => number;
}

/**
 * Writes a run for `tensorboard --logdir FOLDER`: numbers under SCALARS, completions and the settings under TEXT, the
 * settings as a row of HPARAMS. With `resumeFrom`, a new file tells TensorBoard to forget what older files hold of later steps.
 * Throws FILE_WRITE_FAILED.
 */
export function openTensorBoardTracker(folder: string, options: TensorBoardOptions = {}): Required<Tracker> {
  return new TensorBoardTracker(folder, options);
}

class TensorBoardTracker implements Required<Tracker> {
  private readonly file: EventFile;
  private readonly now: () => number;
  private lastStep = 0;

  constructor(folder: string, { resumeFrom, now = Date.now }: TensorBoardOptions) {
    this.now = now;
    this.file = EventFile.create(folder, now);
    if (resumeFrom === undefined) return;
    this.lastStep = resumeFrom;
    this.file.write(resumeFrom + 1, { sessionLog: { status: SessionLog_SessionStatus.START } });
  }

  log(step: number, record: MetricRecord): void {
    this.lastStep = step;
    this.file.write(step, { summary: scalars(record) });
  }

  samples(step: number, rows: readonly SampleRow[]): void {
    if (rows.length > 0) this.file.write(step, { summary: sampleTable("samples", rows) });
  }

  config(settings: JsonObject): void {
    this.file.write(this.lastStep, { summary: text("config", fenced(JSON.stringify(settings, null, 2), "json")) });
    this.file.write(this.lastStep, { summary: sessionStart(settings, this.now() / 1000) });
  }

  close(outcome: RunOutcome = "finished"): void {
    if (this.file.closed) return;
    this.file.write(this.lastStep, { summary: sessionEnd(outcome, this.now() / 1000) });
    this.file.close();
  }
}
