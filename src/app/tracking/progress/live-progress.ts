import type { Clock } from "../../../core/clock.js";
import { getMeanReturn, formatProgressLine, formatProgressLogLine, type ProgressState } from "./progress-line.js";

/** What a line is written to: process.stderr, or a test's own. */
export interface ProgressOutput {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

export interface LiveProgressOptions {
  /** Default: standard error. */
  readonly out?: ProgressOutput;
  /** Default: process.env. NO_COLOR and TERM=dumb are heeded. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly now?: Clock;
}

/** Milliseconds between two drawings of the line, and between two lines where none can be redrawn. */
const REDRAW_INTERVAL_MS = 100;
const LOG_INTERVAL_MS = 10_000;

const CLEAR_LINE = "\r\u001B[K";

/** Shows how far a run is: on a terminal one line that redraws, elsewhere a line now and then. */
export class LiveProgress {
  private readonly out: ProgressOutput;
  private readonly now: Clock;
  private readonly isInteractive: boolean;
  private readonly useColor: boolean;
  private readonly returns: number[] = [];
  private state: ProgressState | undefined;
  private start: { readonly time: number; readonly progress: number } | undefined;
  private lastDrawn = -Infinity;
  private isDirty = false;

  constructor({ out = process.stderr, env = process.env, now = () => performance.now() }: LiveProgressOptions = {}) {
    this.out = out;
    this.now = now;
    this.isInteractive = out.isTTY === true && env.TERM !== "dumb";
    this.useColor = this.isInteractive && (env.NO_COLOR ?? "") === "";
  }

  /** Takes the newest state; call it as often as is handy. */
  update(state: ProgressState): void {
    if (state.updates !== this.state?.updates) this.recordReturn(state);
    this.state = state;
    this.start ??= { time: this.now(), progress: state.progress };
    this.isDirty = true;
    if (this.now() - this.lastDrawn >= (this.isInteractive ? REDRAW_INTERVAL_MS : LOG_INTERVAL_MS)) this.draw();
  }

  /** Writes something else above the line. */
  print(text: string): void {
    if (!this.isInteractive) {
      this.out.write(`${text}\n`);
      return;
    }
    this.out.write(`${CLEAR_LINE}${text}\n`);
    if (this.state !== undefined) this.draw();
  }

  /** Draws the last state and leaves the line; what comes next starts on a clean one. */
  end(): void {
    if (this.state === undefined) return;
    if (this.isDirty || this.isInteractive) this.draw();
    if (this.isInteractive) this.out.write("\n");
    this.state = undefined;
  }

  private recordReturn(state: ProgressState): void {
    const value = getMeanReturn(state);
    if (value !== undefined) this.returns.push(value);
  }

  private draw(): void {
    if (this.state === undefined) return;
    this.lastDrawn = this.now();
    this.isDirty = false;
    const history = { returns: this.returns, secondsLeft: this.secondsLeft(this.state) };
    if (!this.isInteractive) {
      this.out.write(`${formatProgressLogLine(this.state, history)}\n`);
      return;
    }
    // The last column stays free: some terminals begin a new line when it is written.
    const width = Math.max(1, (this.out.columns ?? 80) - 1);
    this.out.write(`${CLEAR_LINE}${formatProgressLine(this.state, history, width, this.useColor)}`);
  }

  /** Seconds until the end at the speed since the first state; a resumed run's earlier part says nothing. */
  private secondsLeft({ progress }: ProgressState): number | undefined {
    if (this.start === undefined || progress <= this.start.progress || progress >= 1) return undefined;
    const elapsed = (this.now() - this.start.time) / 1000;
    return (elapsed * (1 - progress)) / (progress - this.start.progress);
  }
}
