import type { Now } from "../clock.js";
import { meanReturn, progressLine, progressLogLine, type ProgressState } from "./progress-line.js";

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
  readonly now?: Now;
}

/** Milliseconds between two drawings of the line, and between two lines where none can be redrawn. */
const REDRAW_EVERY = 100;
const LOG_EVERY = 10_000;

const CLEAR_LINE = "\r\u001B[K";

/** Shows how far a run is: on a terminal one line that redraws, elsewhere a line now and then. */
export class LiveProgress {
  private readonly out: ProgressOutput;
  private readonly now: Now;
  private readonly redraws: boolean;
  private readonly colour: boolean;
  private readonly returns: number[] = [];
  private state: ProgressState | undefined;
  private begin: { readonly time: number; readonly done: number } | undefined;
  private drawn = -Infinity;
  private pending = false;

  constructor({ out = process.stderr, env = process.env, now = () => performance.now() }: LiveProgressOptions = {}) {
    this.out = out;
    this.now = now;
    this.redraws = out.isTTY === true && env.TERM !== "dumb";
    this.colour = this.redraws && (env.NO_COLOR ?? "") === "";
  }

  /** Takes the newest state; call it as often as is handy. */
  show(state: ProgressState): void {
    if (state.updates !== this.state?.updates) this.remember(state);
    this.state = state;
    this.begin ??= { time: this.now(), done: state.done };
    this.pending = true;
    if (this.now() - this.drawn >= (this.redraws ? REDRAW_EVERY : LOG_EVERY)) this.draw();
  }

  /** Writes something else above the line. */
  print(text: string): void {
    if (!this.redraws) {
      this.out.write(`${text}\n`);
      return;
    }
    this.out.write(`${CLEAR_LINE}${text}\n`);
    if (this.state !== undefined) this.draw();
  }

  /** Draws the last state and leaves the line; what comes next starts on a clean one. */
  end(): void {
    if (this.state === undefined) return;
    if (this.pending || this.redraws) this.draw();
    if (this.redraws) this.out.write("\n");
    this.state = undefined;
  }

  private remember(state: ProgressState): void {
    const value = meanReturn(state);
    if (value !== undefined) this.returns.push(value);
  }

  private draw(): void {
    if (this.state === undefined) return;
    this.drawn = this.now();
    this.pending = false;
    const history = { returns: this.returns, left: this.left(this.state) };
    if (!this.redraws) {
      this.out.write(`${progressLogLine(this.state, history)}\n`);
      return;
    }
    // The last column stays free: some terminals begin a new line when it is written.
    const width = Math.max(1, (this.out.columns ?? 80) - 1);
    this.out.write(`${CLEAR_LINE}${progressLine(this.state, history, width, this.colour)}`);
  }

  /** Seconds until the end at the speed since the first state; a resumed run's earlier part says nothing. */
  private left({ done }: ProgressState): number | undefined {
    if (this.begin === undefined || done <= this.begin.done || done >= 1) return undefined;
    const elapsed = (this.now() - this.begin.time) / 1000;
    return (elapsed * (1 - done)) / (done - this.begin.done);
  }
}
