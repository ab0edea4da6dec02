import { LlamaGymError } from "../../core/errors.js";
import { escapeControls, escapeRendering } from "../../core/terminal-text.js";
import type { ProgressField } from "../tracking/progress/progress-fields.js";
import { ProgressLine, type ProgressHandle } from "../tracking/progress/progress-line.js";
import { InterruptHandler } from "./interrupt-handler.js";
import { UsageError } from "./options/usage-error.js";

export interface ProgressOptions {
  /** Whether the line is erased at the end. */
  readonly isTransient?: boolean;
}

/**
 * Output and interrupts of one command: results on standard output, messages and progress on
 * standard error. Everything that a command prints passes through here, and control characters are
 * shown as escapes.
 */
export class Reporter {
  private readonly line = new ProgressLine();
  private interrupts: InterruptHandler | undefined;
  /** Command that resumes what this one has saved. */
  resumeCommand: string | undefined;
  private readonly neverAborted = new AbortController().signal;

  /** With `debug`, errors are shown with their stack. */
  constructor(private readonly debug = false) {}

  /** Whether progress is redrawn in place. */
  get isInteractive(): boolean {
    return this.line.isInteractive;
  }

  /** Aborted by Ctrl-C or SIGTERM after `handleInterrupts`. */
  get signal(): AbortSignal {
    return this.interrupts?.signal ?? this.neverAborted;
  }

  /** Writes a line of results to standard output. */
  print(text: string): void {
    this.line.clear();
    process.stdout.write(`${escapeControls(text)}\n`);
  }

  /** Writes an environment's text rendering to standard output; it may have colors. */
  printRendering(text: string): void {
    this.line.clear();
    process.stdout.write(`${escapeRendering(text)}\n`);
  }

  /**
   * Writes a part of a completion to standard output. Files and other programs receive it
   * unchanged.
   */
  writeCompletion(piece: string): void {
    process.stdout.write(process.stdout.isTTY ? escapeControls(piece) : piece);
  }

  /** Writes a message to standard error. */
  readonly info = (text: string): void => this.line.print(text);

  /** Writes a warning to standard error. */
  readonly warn = (text: string): void => this.line.print(`Warning: ${text}`);

  /** Adds an activity to the progress line; its first update replaces the activity shown before. */
  progress(fields: () => readonly ProgressField[], options?: ProgressOptions): ProgressHandle {
    return this.line.start(fields, options);
  }

  /**
   * Lets the first Ctrl-C or SIGTERM abort `signal`, after printing `message`; the second one
   * exits.
   */
  handleInterrupts(message?: string): InterruptHandler {
    this.interrupts ??= new InterruptHandler(() => {
      if (message !== undefined) this.info(this.isInteractive ? `\n${message}` : message);
    });
    return this.interrupts;
  }

  /** Stops to handle signals, when the command has ended. */
  endInterrupts(): void {
    this.interrupts?.close();
  }

  /** Prints an error on one line and returns the exit status: 2 for a usage error, otherwise 1. */
  fail(error: unknown): 1 | 2 {
    this.line.clear();
    process.stderr.write(`${escapeControls(formatError(error, this.debug))}\n`);
    return error instanceof UsageError ? 2 : 1;
  }
}

function formatError(error: unknown, debug: boolean): string {
  if (debug && error instanceof Error) return error.stack ?? String(error);
  if (error instanceof UsageError) return error.message;
  if (error instanceof LlamaGymError) return formatLlamaGymError(error).replaceAll("\n", " ");
  return `${String(error).replaceAll("\n", " ")} (--debug shows the stack)`;
}

/**
 * Invalid settings, from options or a config file, are shown as usage errors are: without a code.
 */
function formatLlamaGymError(error: LlamaGymError): string {
  return error.code === "INVALID_ARGUMENT" ? error.message : error.toString();
}
