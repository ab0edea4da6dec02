import type { Clock } from "../../../core/clock.js";
import { escapeControls } from "../../../core/terminal-text.js";
import { renderFields, renderLogFields, type ProgressField } from "./progress-fields.js";

/** Destination of progress lines: process.stderr or a test's stand-in. */
export interface ProgressOutput {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

export interface ProgressLineOptions {
  /** Default: standard error. */
  readonly out?: ProgressOutput;
  /** Default: process.env. NO_COLOR and TERM=dumb are respected. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly now?: Clock;
}

/** A running activity on the progress line. */
export interface ProgressHandle {
  /** Redraws the line when the redraw interval has passed; cheap enough to call often. */
  readonly update: () => void;
  /** Draws the final state and moves to a new line, or erases the line of a transient activity. */
  readonly end: () => void;
}

interface Activity {
  readonly fields: () => readonly ProgressField[];
  readonly isTransient: boolean;
  lastDrawn: number;
  hasChanged: boolean;
}

const REDRAW_INTERVAL_MS = 100;
/** Interval between lines where the output cannot be redrawn. */
const LOG_INTERVAL_MS = 10_000;

const DEFAULT_COLUMNS = 80;
const CLEAR_LINE = "\r\u001B[K";

/**
 * Shows one activity at a time: a line redrawn in place on a terminal, a line every ten seconds
 * elsewhere.
 */
export class ProgressLine {
  /** Whether the line is redrawn in place. */
  readonly isInteractive: boolean;
  private readonly out: ProgressOutput;
  private readonly now: Clock;
  private readonly useColor: boolean;
  private current: Activity | undefined;

  constructor({ out = process.stderr, env = process.env, now = () => performance.now() }: ProgressLineOptions = {}) {
    this.out = out;
    this.now = now;
    this.isInteractive = out.isTTY === true && env.TERM !== "dumb";
    this.useColor = this.isInteractive && (env.NO_COLOR ?? "") === "";
  }

  /**
   * Adds an activity; its first update replaces the activity shown before. Transient activities
   * leave no line behind.
   */
  start(fields: () => readonly ProgressField[], { isTransient = false } = {}): ProgressHandle {
    const lastDrawn = isTransient && !this.isInteractive ? this.now() : -Infinity;
    const activity: Activity = { fields, isTransient, lastDrawn, hasChanged: false };
    return {
      update: () => this.update(activity),
      end: () => {
        if (this.current === activity) this.finish(activity);
      },
    };
  }

  /** Writes a message above the line. */
  print(message: string): void {
    const text = escapeControls(message);
    if (!this.isInteractive) {
      this.out.write(`${text}\n`);
      return;
    }
    this.out.write(`${CLEAR_LINE}${text}\n`);
    if (this.current !== undefined) this.draw(this.current);
  }

  /** Erases the line until the next update, to make room for other output. */
  clear(): void {
    if (!this.isInteractive || this.current === undefined) return;
    this.out.write(CLEAR_LINE);
    this.current.lastDrawn = -Infinity;
  }

  private update(activity: Activity): void {
    if (this.current !== activity) {
      if (this.current !== undefined) this.finish(this.current);
      this.current = activity;
    }
    activity.hasChanged = true;
    const interval = this.isInteractive ? REDRAW_INTERVAL_MS : LOG_INTERVAL_MS;
    if (this.now() - activity.lastDrawn >= interval) this.draw(activity);
  }

  private finish(activity: Activity): void {
    this.current = undefined;
    if (activity.isTransient) {
      if (this.isInteractive) this.out.write(CLEAR_LINE);
      return;
    }
    if (activity.hasChanged || this.isInteractive) this.draw(activity);
    if (this.isInteractive) this.out.write("\n");
  }

  private draw(activity: Activity): void {
    activity.lastDrawn = this.now();
    activity.hasChanged = false;
    // A line feed would move the line.
    const fields = activity
      .fields()
      .map((field) => ({ ...field, text: escapeControls(field.text).replaceAll("\n", "\\n") }));
    if (!this.isInteractive) {
      this.out.write(`${renderLogFields(fields)}\n`);
      return;
    }
    // Some terminals wrap when the last column is written; some report 0 columns.
    const width = (this.out.columns || DEFAULT_COLUMNS) - 1;
    this.out.write(`${CLEAR_LINE}${renderFields(fields, width, this.useColor)}`);
  }
}
