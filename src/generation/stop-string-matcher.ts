/**
 * Looks for stop strings in a text that comes in pieces. What could be the beginning of one is held back until it is known.
 * The first stop string to be complete wins, so that the outcome does not depend on where the pieces are cut.
 */
export class StopStringMatcher {
  private buffered = "";
  private matched = false;

  constructor(private readonly stopStrings: readonly string[]) {}

  /** Whether a stop string has come. */
  get hasMatched(): boolean {
    return this.matched;
  }

  /** Takes more text and gives what is certain to come before any stop string. */
  push(piece: string): string {
    if (this.matched || piece === "") return "";
    const text = this.buffered + piece;
    const start = this.findFirstStop(text);
    if (start !== undefined) {
      this.matched = true;
      this.buffered = "";
      return text.slice(0, start);
    }
    const partialLength = this.partialMatchLength(text);
    this.buffered = text.slice(text.length - partialLength);
    return text.slice(0, text.length - partialLength);
  }

  /** Gives what was held back: no more text comes. */
  flush(): string {
    const text = this.buffered;
    this.buffered = "";
    return text;
  }

  /** Where the stop string begins that ends first (of those, the longest). */
  private findFirstStop(text: string): number | undefined {
    let best: { start: number; stopEnd: number } | undefined;
    for (const stop of this.stopStrings) {
      const start = text.indexOf(stop);
      if (start < 0) continue;
      const stopEnd = start + stop.length;
      if (best === undefined || stopEnd < best.stopEnd || (stopEnd === best.stopEnd && start < best.start))
        best = { start, stopEnd };
    }
    return best?.start;
  }

  /** The length of the text's end that may be the beginning of a stop string. */
  private partialMatchLength(text: string): number {
    const maxLength = Math.max(0, ...this.stopStrings.map(({ length }) => length - 1));
    for (let length = Math.min(maxLength, text.length); length > 0; length--) {
      const suffix = text.slice(text.length - length);
      if (this.stopStrings.some((stop) => stop.startsWith(suffix))) return length;
    }
    return 0;
  }
}
