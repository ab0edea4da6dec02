import { type Extraction, EXTRACTION_KINDS } from "../../rollout/extraction.js";
import type { Turn } from "../../rollout/trajectory.js";

/** Counts how actions were found. */
export class ExtractionCounter {
  private counts = new Map<Extraction<unknown>["kind"], number>();

  add({ kind }: Pick<Extraction<unknown>, "kind">): void {
    this.counts.set(kind, (this.counts.get(kind) ?? 0) + 1);
  }

  /**
   * Returns the fraction of each kind since the last call as metrics `extraction/*`, zeros
   * included, and resets the counts. Empty if nothing was counted.
   */
  flush(): Record<string, number> {
    const total = [...this.counts.values()].reduce((sum, count) => sum + count, 0);
    if (total === 0) return {};
    const shares = [...EXTRACTION_KINDS, "failure" as const].map(
      (kind) => [`extraction/${kind === "failure" ? "failed" : kind}`, (this.counts.get(kind) ?? 0) / total] as const,
    );
    this.counts = new Map();
    return Object.fromEntries(shares);
  }
}

/**
 * Computes the metrics `extraction/*` of turns; rejected and resampled completions count as
 * failures.
 */
export function computeExtractionShares(
  turns: readonly Pick<Turn, "extraction" | "attempts">[],
): Readonly<Record<string, number>> {
  const counter = new ExtractionCounter();
  for (const { extraction: kind, attempts } of turns) {
    if (kind === undefined) continue;
    counter.add({ kind });
    for (let retry = 1; retry < attempts; retry++) counter.add({ kind: "failure" });
  }
  return counter.flush();
}
