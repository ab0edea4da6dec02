import type { DownloadProgress } from "../files/index.js";
import { formatBytes } from "./output.js";

const BAR_WIDTH = 24;
const REDRAW_EVERY = 100;

/**
 * Shows downloads on standard error: on a terminal one line with a bar for all files together, otherwise a line for each file
 * that is whole.
 */
export class DownloadBars {
  private readonly files = new Map<string, DownloadProgress>();
  private readonly started = performance.now();
  private drawn = -Infinity;

  constructor(private readonly out: NodeJS.WriteStream = process.stderr) {}

  readonly update = (progress: DownloadProgress): void => {
    const before = this.files.get(progress.file);
    this.files.set(progress.file, progress);
    const whole = progress.loadedBytes >= progress.totalBytes;
    if (this.out.isTTY) {
      if (whole || performance.now() - this.drawn >= REDRAW_EVERY) this.draw();
    } else if (whole && (before === undefined || before.loadedBytes < before.totalBytes)) {
      this.out.write(`Downloaded ${progress.file} (${formatBytes(progress.totalBytes)})\n`);
    }
  };

  /** Takes the bar away; what comes next starts on a clean line. */
  end(): void {
    if (this.out.isTTY && this.files.size > 0) this.out.write("\r\u001B[K");
  }

  private draw(): void {
    this.drawn = performance.now();
    const all = [...this.files.values()];
    const loaded = all.reduce((sum, { loadedBytes }) => sum + loadedBytes, 0);
    const total = all.reduce((sum, { totalBytes }) => sum + totalBytes, 0);
    const share = total === 0 ? 1 : loaded / total;
    const filled = Math.round(share * BAR_WIDTH);
    const rate = loaded / Math.max(0.001, (this.drawn - this.started) / 1000);
    const names = all.filter(({ loadedBytes, totalBytes }) => loadedBytes < totalBytes).map(({ file }) => file);
    const line =
      `${"#".repeat(filled)}${"-".repeat(BAR_WIDTH - filled)} ${Math.floor(share * 100)} % ` +
      `${formatBytes(loaded)} of ${formatBytes(total)}, ${formatBytes(rate)}/s  ${names.join(", ")}`;
    this.out.write(`\r\u001B[K${line.slice(0, (this.out.columns ?? 80) - 1)}`);
  }
}
