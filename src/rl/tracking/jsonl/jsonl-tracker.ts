import { join } from "node:path";
import { AppendFile } from "../append-file.js";
import type { MetricRecord, ResumePoint, CompletionRow, Tracker } from "../tracker.js";
import { truncateAfterStep } from "./truncate-after-step.js";

const METRICS_FILE = "metrics.jsonl";
const COMPLETIONS_FILE = "completions.jsonl";

/**
 * Keeps a run as lines of JSON: `metrics.jsonl` has one flat record a line, `completions.jsonl` one completion a line, each
 * with its "step". A number that is not finite is null there, since JSON has no other word for it.
 * With `resumeFrom`, lines of later steps and broken ones are cut off first. Without it the files must not be there yet.
 * Throws FILE_WRITE_FAILED, FILE_READ_FAILED, INVALID_STATE.
 */
export async function openJsonlTracker(
  folder: string,
  { resumeFromStep }: ResumePoint = {},
): Promise<Required<Tracker>> {
  const open = async (name: string): Promise<AppendFile> => {
    const path = join(folder, name);
    if (resumeFromStep === undefined) return AppendFile.create(path);
    await truncateAfterStep(path, resumeFromStep);
    return AppendFile.open(path);
  };
  const metrics = await open(METRICS_FILE);
  try {
    return new JsonlTracker(metrics, await open(COMPLETIONS_FILE));
  } catch (error) {
    metrics.close();
    throw error;
  }
}

class JsonlTracker implements Required<Tracker> {
  constructor(
    private readonly metrics: AppendFile,
    private readonly completions: AppendFile,
  ) {}

  log(step: number, record: MetricRecord): void {
    this.metrics.append(formatLine(step, record));
  }

  logCompletions(step: number, rows: readonly CompletionRow[]): void {
    this.completions.append(rows.map((row) => formatLine(step, row)).join(""));
  }

  /** The settings of a run have a file of their own, which the run itself writes. */
  logConfig(): void {}

  close(): void {
    this.metrics.close();
    this.completions.close();
  }
}

function formatLine(step: number, values: Readonly<Record<string, unknown>>): string {
  // "step" stands first, and is the step even where a record has a number of that name.
  return `${JSON.stringify(Object.assign({ step }, values, { step }))}\n`;
}
