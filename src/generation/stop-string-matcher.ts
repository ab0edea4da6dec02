/**
 * Finds stop strings in a text that arrives in pieces. A possible prefix of a stop string is
 * buffered until it is decided. The first complete match wins, so the result does not depend on how
 * the text is split.
 */
export class StopStringMatcher {
  private buffered = "";
  private matched = false;

  constructor(private readonly stopStrings: readonly string[]) {}

  /** Whether the text contains a stop string. */
  get hasMatched(): boolean {
    return this.matched;
  }

  /** Adds text and returns the part that is certain to precede any stop string. */
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

  /** Returns the buffered text at the end. */
  flush(): string {
    const text = this.buffered;
    this.buffered = "";
    return text;
  }

  /** Returns the start of the stop string that ends first; of those, the longest. */
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

  /** Returns the length of the longest suffix that is a prefix of a stop string. */
  private partialMatchLength(text: string): number {
    const maxLength = Math.max(0, ...this.stopStrings.map(({ length }) => length - 1));
    for (let length = Math.min(maxLength, text.length); length > 0; length--) {
      const suffix = text.slice(text.length - length);
      if (this.stopStrings.some((stop) => stop.startsWith(suffix))) return length;
    }
    return 0;
  }
}
