/**
 * Looks for stop strings in a text that comes in pieces. What could be the beginning of one is held back until it is known.
 * The first stop string to be complete wins, so that the outcome does not depend on where the pieces are cut.
 */
export class StopStrings {
  private held = "";
  private found = false;

  constructor(private readonly stops: readonly string[]) {}

  /** Whether a stop string has come. */
  get stopped(): boolean {
    return this.found;
  }

  /** Takes more text and gives what is certain to come before any stop string. */
  push(piece: string): string {
    if (this.found || piece === "") return "";
    const text = this.held + piece;
    const start = this.firstStop(text);
    if (start !== undefined) {
      this.found = true;
      this.held = "";
      return text.slice(0, start);
    }
    const kept = this.unfinished(text);
    this.held = text.slice(text.length - kept);
    return text.slice(0, text.length - kept);
  }

  /** Gives what was held back: no more text comes. */
  end(): string {
    const text = this.held;
    this.held = "";
    return text;
  }

  /** Where the stop string begins that ends first (of those, the longest). */
  private firstStop(text: string): number | undefined {
    let best: { start: number; end: number } | undefined;
    for (const stop of this.stops) {
      const start = text.indexOf(stop);
      if (start < 0) continue;
      const end = start + stop.length;
      if (best === undefined || end < best.end || (end === best.end && start < best.start)) best = { start, end };
    }
    return best?.start;
  }

  /** The length of the text's end that may be the beginning of a stop string. */
  private unfinished(text: string): number {
    const longest = Math.max(0, ...this.stops.map(({ length }) => length - 1));
    for (let length = Math.min(longest, text.length); length > 0; length--) {
      const end = text.slice(text.length - length);
      if (this.stops.some((stop) => stop.startsWith(end))) return length;
    }
    return 0;
  }
}
