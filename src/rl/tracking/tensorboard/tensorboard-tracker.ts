import type { ResumePoint, Tracker } from "../tracker.js";
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
 * Writes a run for `tensorboard --logdir FOLDER`: metrics under SCALARS, completions and settings
 * under TEXT, and settings as a row of HPARAMS. With `resumeFromStep`, a new file makes TensorBoard
 * discard later steps of older files.
 * @throws FILE_WRITE_FAILED
 */
export function openTensorBoardTracker(
  folder: string,
  { resumeFromStep, now = Date.now }: TensorBoardOptions = {},
): Required<Omit<Tracker, "logRollout">> {
  const file = EventFile.create(folder, now);
  let lastStep = resumeFromStep ?? 0;
  if (resumeFromStep !== undefined)
    file.write(resumeFromStep + 1, { sessionLog: { status: SessionLog_SessionStatus.START } });
  return {
    log: (step, record) => {
      lastStep = step;
      file.write(step, { summary: createScalarSummary(record) });
    },
    logCompletions: (step, rows) => {
      if (rows.length > 0) file.write(step, { summary: createCompletionTable("completions", rows) });
    },
    logConfig: (settings) => {
      const json = fenceCode(JSON.stringify(settings, null, 2), "json");
      file.write(lastStep, { summary: createTextSummary("config", json) });
      file.write(lastStep, { summary: createSessionStart(settings, now() / 1000) });
    },
    close: (outcome = "finished") => {
      if (file.closed) return;
      file.write(lastStep, { summary: createSessionEnd(outcome, now() / 1000) });
      file.close();
    },
  };
}
