import type { Tracker } from "../../rl/tracking/index.js";
import { openTrackers, type OpenTrackersOptions } from "./open-trackers.js";
import { clearControl } from "./run-control.js";
import { writeRunConfig } from "../../rl/train/index.js";
import { RunLog } from "./run-log.js";

interface RunRecordsOptions extends Omit<OpenTrackersOptions, "resumeFromStep"> {
  /** Settings for config.json, if not all of `config`. */
  readonly saved?: object;
  /** Updates made before the run was resumed; undefined for a new run. */
  readonly resumedAt: number | undefined;
  /** Whether a resumed run continues from a checkpoint. Default: if it made updates before. */
  readonly hasCheckpoint?: boolean;
}

/** The settings, the log and the trackers of an open run, with its outcome. */
export class RunRecords {
  private outcome: "finished" | "stopped" | "failed" = "stopped";

  private constructor(
    readonly log: RunLog,
    readonly tracker: Required<Tracker>,
  ) {}

  /**
   * Writes config.json and opens the log and the trackers. @throws FILE_WRITE_FAILED, and as
   * `loadTracker`
   */
  static async open(
    folder: string,
    config: Parameters<typeof openTrackers>[1],
    { saved = config, resumedAt, hasCheckpoint = (resumedAt ?? 0) > 0, trackers = [], ...options }: RunRecordsOptions,
  ): Promise<RunRecords> {
    const settings = await writeRunConfig(folder, saved);
    await clearControl(folder);
    const log = await RunLog.open(folder, { resumedAt, onWarning: options.onWarning });
    // Without a checkpoint, what precedes the first update (step 0) is repeated as well.
    const resumeFromStep = resumedAt === undefined || hasCheckpoint ? resumedAt : -1;
    const tracker = await openTrackers(folder, config, {
      ...options,
      trackers: [log.tracker, ...trackers],
      resumeFromStep,
    });
    await tracker.logConfig(settings);
    return new RunRecords(log, tracker);
  }

  get isFinished(): boolean {
    return this.outcome === "finished";
  }

  /** Awaits training and records its outcome. */
  async watch<Result extends { readonly isInterrupted: boolean }>(training: Promise<Result>): Promise<Result> {
    try {
      const result = await training;
      this.outcome = result.isInterrupted ? "stopped" : "finished";
      return result;
    } catch (error) {
      this.outcome = "failed";
      throw error;
    }
  }

  async close(): Promise<void> {
    await this.tracker.close(this.outcome === "failed" ? "failed" : "finished");
    this.log.end(this.outcome);
  }
}
