import { type Extraction, EXTRACTION_KINDS } from "../../rollout/extraction.js";
import type { Turn } from "../../rollout/trajectory.js";

/** Counts how actions were found, for the logs of a run. */
export class ExtractionCounter {
  private counts = new Map<Extraction<unknown>["kind"], number>();

  add({ kind }: Pick<Extraction<unknown>, "kind">): void {
    this.counts.set(kind, (this.counts.get(kind) ?? 0) + 1);
  }

  /**
   * The share of each kind and of failures among the replies since the last call, under extraction/*: all of them, also those
   * that are 0; they sum to 1. Empty where there was no reply.
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

/** The shares of an update, under extraction/*: of all replies that were drawn for these turns, those drawn again included. */
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
