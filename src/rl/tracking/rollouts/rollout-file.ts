import { fs } from "#platform";
import { writeFileAtomic } from "../../../models/files/index.js";
import { AppendFile } from "../append-file.js";
import { truncateAfterStep } from "../jsonl/truncate-after-step.js";
import type { ResumePoint, Tracker } from "../tracker.js";
import { encodeChunk, ROLLOUTS_FILE, type RolloutRecord } from "./chunk.js";

export interface RolloutFileOptions extends ResumePoint {
  /** A file of more bytes is thinned. */
  readonly maxBytes: number;
}

/** Fraction of the limit that a thinned file has: thinning then costs little, as it happens rarely. */
const THINNED_SHARE = 0.5;

/** Opens a tracker that writes recorded episodes into a run folder. @throws as `openJsonlTracker` */
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

  /** Opens the file in a run folder; lines after the step to resume from are removed. @throws as `openJsonlTracker` */
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
   * Drops every second of the older lines until the file is small enough, so that the whole run remains visible, more coarsely at
   * its start. The last line always stays.
   */
  private async thin(added: number): Promise<void> {
    const { path } = this.file;
    let lines: string[] = [];
    for await (const line of fs.readLines(path)) lines.push(`${line}\n`);
    const total = () => lines.reduce((sum, line) => sum + line.length, 0) + added;
    while (lines.length > 1 && total() > this.maxBytes * THINNED_SHARE)
      lines = lines.filter((_, i) => (lines.length - 1 - i) % 2 === 0);
    this.file.close();
    await writeFileAtomic(path, lines.join(""));
    this.file = AppendFile.open(path);
    this.size = total() - added;
  }
}
