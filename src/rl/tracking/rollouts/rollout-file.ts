import { fs } from "#platform";
import { writeFileAtomic } from "../../../core/files/write-file-atomic.js";
import { AppendFile } from "../append-file.js";
import { truncateAfterStep } from "../jsonl/truncate-after-step.js";
import type { ResumePoint, Tracker } from "../tracker.js";
import { encodeChunk, ROLLOUTS_FILE, type RolloutRecord } from "./chunk.js";

export interface RolloutFileOptions extends ResumePoint {
  /** A file of more bytes is thinned. */
  readonly maxBytes: number;
}

/**
 * Fraction of the limit that a thinned file has: thinning then costs little, as it happens rarely.
 */
const THINNED_SHARE = 0.5;

/**
 * Opens a tracker that writes recorded episodes into a run folder. @throws as `openJsonlTracker`
 */
export async function openRolloutTracker(folder: string, options: RolloutFileOptions): Promise<Tracker> {
  const file = await RolloutFile.open(folder, options);
  return { log: () => {}, logRollout: async (step, record) => file.append(step, record), close: () => file.close() };
}

/** The recorded episodes of a run: appends one line per update. */
class RolloutFile {
  private constructor(
    private file: AppendFile,
    private size: number,
    private readonly maxBytes: number,
  ) {}

  /**
   * Opens the file in a run folder; lines after the step to resume from are removed. @throws as
   * `openJsonlTracker`
   */
  static async open(folder: string, { maxBytes, resumeFromStep }: RolloutFileOptions): Promise<RolloutFile> {
    const path = fs.join(folder, ROLLOUTS_FILE);
    if (resumeFromStep === undefined) return new RolloutFile(AppendFile.create(path), 0, maxBytes);
    await truncateAfterStep(path, resumeFromStep);
    const file = AppendFile.open(path);
    return new RolloutFile(file, (await fs.stat(path)).size, maxBytes);
  }

  /** Appends the episodes of an update. @throws FILE_WRITE_FAILED */
  async append(step: number, record: RolloutRecord): Promise<void> {
    const line = await encodeChunk(step, record);
    if (this.size + line.length > this.maxBytes) await this.thin(line.length);
    this.file.append(line);
    this.size += line.length;
  }

  close(): void {
    this.file.close();
  }

  /**
   * Drops older lines until the file is small enough: those that remain are spread evenly over the
   * run.
   */
  private async thin(added: number): Promise<void> {
    const { path } = this.file;
    let lines: string[] = [];
    for await (const line of fs.readLines(path)) lines.push(`${line}\n`);
    const total = () => lines.reduce((sum, line) => sum + line.length, 0) + added;
    while (lines.length > 0 && total() > this.maxBytes * THINNED_SHARE) lines = halve(lines);
    this.file.close();
    await writeFileAtomic(path, lines.join(""));
    this.file = AppendFile.open(path);
    this.size = total() - added;
  }
}

/**
 * Keeps the newest quarter of the lines, and as many of the others at even distances of their
 * steps.
 */
function halve(lines: readonly string[]): string[] {
  const quarter = Math.floor(lines.length / 4);
  const older = lines.slice(0, lines.length - quarter);
  const steps = older.map((line) => Number(/"step":(\d+)/.exec(line)?.[1] ?? 0));
  const distance = (steps.at(-1)! - steps[0] + 1) / Math.max(1, quarter);
  const bucket = (i: number) => Math.floor((steps[i] - steps[0]) / distance);
  const spread = quarter === 0 ? [] : older.filter((_, i) => i === 0 || bucket(i) !== bucket(i - 1));
  return [...spread, ...lines.slice(older.length)];
}
