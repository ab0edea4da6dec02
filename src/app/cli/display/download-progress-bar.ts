import type { DownloadProgress } from "../../../models/files/index.js";
import { formatBytes } from "./output.js";

const BAR_WIDTH = 24;
const REDRAW_INTERVAL_MS = 100;

/**
 * Shows downloads on standard error: on a terminal one line with a bar for all files together, otherwise a line for each file
 * that is whole.
 */
export class DownloadProgressBar {
  private readonly files = new Map<string, DownloadProgress>();
  private readonly started = performance.now();
  private lastDrawn = -Infinity;

  constructor(private readonly out: NodeJS.WriteStream = process.stderr) {}

  readonly update = (progress: DownloadProgress): void => {
    const previous = this.files.get(progress.file);
    this.files.set(progress.file, progress);
    const isComplete = progress.loadedBytes >= progress.totalBytes;
    if (this.out.isTTY) {
      if (isComplete || performance.now() - this.lastDrawn >= REDRAW_INTERVAL_MS) this.draw();
    } else if (isComplete && (previous === undefined || previous.loadedBytes < previous.totalBytes)) {
      this.out.write(`Downloaded ${progress.file} (${formatBytes(progress.totalBytes)})\n`);
    }
  };

  /** Takes the bar away; what comes next starts on a clean line. */
  clear(): void {
    if (this.out.isTTY && this.files.size > 0) this.out.write("\r\u001B[K");
  }

  private draw(): void {
    this.lastDrawn = performance.now();
    const all = [...this.files.values()];
    const loaded = all.reduce((sum, { loadedBytes }) => sum + loadedBytes, 0);
    const total = all.reduce((sum, { totalBytes }) => sum + totalBytes, 0);
    const fraction = total === 0 ? 1 : loaded / total;
    const filled = Math.round(fraction * BAR_WIDTH);
    const rate = loaded / Math.max(0.001, (this.lastDrawn - this.started) / 1000);
    const pending = all.filter(({ loadedBytes, totalBytes }) => loadedBytes < totalBytes).map(({ file }) => file);
    const line =
      `${"#".repeat(filled)}${"-".repeat(BAR_WIDTH - filled)} ${Math.floor(fraction * 100)} % ` +
      `${formatBytes(loaded)} of ${formatBytes(total)}, ${formatBytes(rate)}/s  ${pending.join(", ")}`;
    this.out.write(`\r\u001B[K${line.slice(0, (this.out.columns ?? 80) - 1)}`);
  }
}
