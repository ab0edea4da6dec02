import type { Device } from "../../src/engine/runtime/index.js";

/** Options of a parity run. */
export interface ParityOptions {
  /** A model folder or GGUF file, for the cases that need a real model's tokenizer. */
  readonly model?: string;
  /** The device that computes; default "cpu". */
  readonly device?: Device;
}

/** Collects the outcome of each parity case and prints it as it comes. */
export class ParityReport {
  passed = 0;
  failed = 0;

  constructor(private readonly print: (line: string) => void = console.log) {}

  /** One line for a case: its largest error (relative to max(1, |value|)) against its tolerance. */
  checkWithin(name: string, error: number, tolerance: number): void {
    const ok = error <= tolerance;
    this.tally(ok);
    this.print(
      `${ok ? "ok  " : "FAIL"} ${name}  error ${error.toExponential(2)} (at most ${tolerance.toExponential(0)})`,
    );
  }

  /** One line for a case whose values must be exactly equal; `detail` says what differed. */
  checkEqual(name: string, ok: boolean, detail = ""): void {
    this.tally(ok);
    this.print(`${ok ? "ok  " : "FAIL"} ${name}  ${ok ? "equal" : `differs ${detail}`}`);
  }

  /** A case that broke before it could be compared. */
  error(name: string, error: unknown): void {
    this.tally(false);
    this.print(`FAIL ${name}  ${error instanceof Error ? error.message : String(error)}`);
  }

  /** A part that is not there, or cannot be run; it does not count. */
  skip(name: string, reason: string): void {
    this.print(`skip ${name}  ${reason}`);
  }

  private tally(ok: boolean): void {
    if (ok) this.passed++;
    else this.failed++;
  }
}

/**
 * The largest |actual - expected| / max(1, |expected|); NaN or a different length counts as
 * infinite.
 */
export function maxRelativeError(actual: ArrayLike<number>, expected: ArrayLike<number>): number {
  if (actual.length !== expected.length) return Infinity;
  let largest = 0;
  for (let i = 0; i < expected.length; i++) {
    const error = Math.abs(actual[i] - expected[i]) / Math.max(1, Math.abs(expected[i]));
    if (!(error <= largest)) largest = Number.isNaN(error) ? Infinity : error;
  }
  return largest;
}
