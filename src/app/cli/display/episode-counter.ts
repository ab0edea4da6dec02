/** Milliseconds between two drawings. */
const REDRAW_INTERVAL_MS = 100;

/** Tells a person at a terminal how many episodes have been played. */
export class EpisodeCounter {
  private finished = 0;
  private lastDrawn = 0;

  /** `label` says what for. */
  constructor(
    private readonly episodes: number,
    private readonly label = "",
  ) {}

  add(episodes: number): void {
    this.finished += episodes;
    const now = performance.now();
    if (!process.stderr.isTTY || now - this.lastDrawn < REDRAW_INTERVAL_MS) return;
    this.lastDrawn = now;
    process.stderr.write(`\r\u001B[K${this.label}${this.finished} of ${this.episodes} episodes`);
  }

  /** Takes the line away. */
  clear(): void {
    if (this.lastDrawn > 0) process.stderr.write("\r\u001B[K");
    this.lastDrawn = 0;
  }
}
