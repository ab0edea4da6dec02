/** Milliseconds between two drawings. */
const REDRAW_EVERY = 100;

/** Tells a person at a terminal how many episodes have been played. */
export class EpisodeCounter {
  private played = 0;
  private shown = 0;

  /** `label` says what for. */
  constructor(
    private readonly episodes: number,
    private readonly label = "",
  ) {}

  add(episodes: number): void {
    this.played += episodes;
    const now = performance.now();
    if (!process.stderr.isTTY || now - this.shown < REDRAW_EVERY) return;
    this.shown = now;
    process.stderr.write(`\r\u001B[K${this.label}${this.played} of ${this.episodes} episodes`);
  }

  /** Takes the line away. */
  end(): void {
    if (this.shown > 0) process.stderr.write("\r\u001B[K");
    this.shown = 0;
  }
}
