import { ProgressLine, type ProgressHandle, type ProgressLineOptions } from "./progress-line.js";
import { TrainingProgress, type ProgressState } from "./training-progress.js";

/** Options of `LiveProgress`. */
export type LiveProgressOptions = ProgressLineOptions;

/**
 * Shows the progress of a training run: a line redrawn in place on a terminal, a line every ten
 * seconds elsewhere.
 */
export class LiveProgress {
  private readonly line: ProgressLine;
  private readonly progress: TrainingProgress;
  private handle: ProgressHandle | undefined;

  constructor(options: LiveProgressOptions = {}) {
    this.line = new ProgressLine(options);
    this.progress = new TrainingProgress(options.now);
  }

  /** Shows a new state; cheap enough to call often. */
  update(state: ProgressState): void {
    this.handle ??= this.line.start(this.progress.fields);
    this.progress.update(state);
    this.handle.update();
  }

  /** Writes a message above the line. */
  print(text: string): void {
    this.line.print(text);
  }

  /** Draws the last state; output that follows starts on a new line. */
  end(): void {
    this.handle?.end();
    this.handle = undefined;
  }
}
