import { type Extraction, type ExtractionKind, extractionKinds } from "./extractor.js";

/** Counts how actions were found, for the logs of a run. */
export class ExtractionCounter {
  private counts = new Map<ExtractionKind | "failure", number>();

  add({ kind }: Extraction<unknown>): void {
    this.counts.set(kind, (this.counts.get(kind) ?? 0) + 1);
  }

  /**
   * The share of each kind and of failures among the replies since the last call, under extraction/*: all of them, also those
   * that are 0; they sum to 1. Empty where there was no reply.
   */
  take(): Record<string, number> {
    const total = [...this.counts.values()].reduce((sum, count) => sum + count, 0);
    if (total === 0) return {};
    const shares = [...extractionKinds, "failure" as const].map(
      (kind) => [`extraction/${kind}`, (this.counts.get(kind) ?? 0) / total] as const,
    );
    this.counts = new Map();
    return Object.fromEntries(shares);
  }
}
