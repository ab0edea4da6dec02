import { readFile } from "node:fs/promises";
import { hostname } from "node:os";
import { dirname, join, resolve } from "node:path";
import { errorMessage } from "../../core/errors.js";
import { AppendFile, type Tracker } from "../../rl/tracking/index.js";
import { LOG_FILE, type RunLogLine } from "./run-log-line.js";

/** Seconds between records of the memory. */
const RESOURCES_INTERVAL_MS = 10_000;

/**
 * Records what happens to a run: starts, ends, warnings, control and memory. Lines are appended and
 * never removed, also when a run is resumed. A log that cannot be written is reported once and
 * ends.
 */
export class RunLog {
  private step = 0;
  private seconds = 0;
  private lastResourcesMs = 0;

  private constructor(
    private file: AppendFile | undefined,
    private readonly onWarning: (message: string) => void,
  ) {}

  /** Opens the log in a run folder and records the start. */
  static async open(
    folder: string,
    { resumedAt, onWarning }: { readonly resumedAt: number | undefined; readonly onWarning: (message: string) => void },
  ): Promise<RunLog> {
    const log = new RunLog(undefined, onWarning);
    try {
      log.file = AppendFile.open(join(folder, LOG_FILE));
    } catch (error) {
      onWarning(`${errorMessage(error)} Training continues without this log.`);
    }
    log.step = resumedAt ?? 0;
    const commit = await findCommit(process.cwd());
    log.write("start", resumedAt === undefined ? "Started." : `Resumed from update ${resumedAt}.`, {
      pid: process.pid,
      host: hostname(),
      ...(commit === undefined ? {} : { commit }),
    });
    return log;
  }

  /** Follows the steps, and records the memory from time to time. */
  readonly tracker: Tracker = {
    log: (step, { step_time: seconds }) => {
      this.step = step;
      this.seconds += Number.isFinite(seconds) ? seconds : 0;
      if (Date.now() - this.lastResourcesMs >= RESOURCES_INTERVAL_MS) this.writeResources();
    },
  };

  warning(message: string, page?: string): void {
    this.write("warning", message, page === undefined ? {} : { page });
  }

  control(message: string, request: string, ok: boolean): void {
    this.write("control", message, { request, ok });
  }

  end(outcome: "finished" | "stopped" | "failed"): void {
    if (this.file === undefined) return;
    this.writeResources();
    this.write("end", { finished: "Finished.", stopped: "Stopped before its end.", failed: "Failed." }[outcome], {
      outcome,
    });
    this.file?.close();
    this.file = undefined;
  }

  private writeResources(): void {
    this.lastResourcesMs = Date.now();
    const memoryBytes = process.memoryUsage.rss();
    this.write("resources", "", { memoryBytes, seconds: Number(this.seconds.toFixed(3)) });
  }

  private write(kind: RunLogLine["kind"], message: string, fields: Partial<RunLogLine>): void {
    const line: RunLogLine = { time: Date.now(), step: this.step, kind, message, ...fields };
    try {
      this.file?.append(`${JSON.stringify(line)}\n`);
    } catch (error) {
      this.file = undefined;
      this.onWarning(`${errorMessage(error)} Training continues without this log.`);
    }
  }
}

/**
 * Returns the commit that is checked out in a folder or the nearest one above it; undefined outside
 * Git repositories.
 */
async function findCommit(folder: string): Promise<string | undefined> {
  const read = async (path: string) => readFile(path, "utf8").catch(() => undefined);
  for (let path = resolve(folder); ; path = dirname(path)) {
    const head = await read(join(path, ".git", "HEAD"));
    if (head === undefined && dirname(path) !== path) continue;
    const ref = /^ref: ([\w./-]+)$/m.exec(head ?? "")?.[1];
    if (ref === undefined) return /^[0-9a-f]{40,64}$/m.exec(head ?? "")?.[0];
    const packed = (await read(join(path, ".git", "packed-refs")))
      ?.split("\n")
      .find((line) => line.endsWith(` ${ref}`));
    return /^[0-9a-f]{40,64}/.exec((await read(join(path, ".git", ref))) ?? packed ?? "")?.[0];
  }
}
