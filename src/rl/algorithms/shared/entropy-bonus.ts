import { choice, number } from "../../../core/settings.js";
import type { Node } from "../../../engine/graph/index.js";
import { scheduleFactor } from "../../../engine/optim/index.js";
import { invalidArgument } from "../../../core/errors.js";

/** Schedules of the entropy bonus. */
export type EntropySchedule = "constant" | "linear" | "cosine";

/** The setting entropySchedulerType, without its source. */
export const ENTROPY_SCHEDULE = choice({
  default: "constant",
  choices: ["constant", "linear", "cosine"],
  description: "Schedule of the entropy bonus.",
});

/** The setting entropyMinRate. */
export const ENTROPY_MIN_RATE = number({
  default: 0,
  min: 0,
  max: 1,
  description: "Final share of entropyCoef, to which entropySchedulerType falls.",
  source: "0, as in TRL 1.16",
});

/** Returns the factor of the entropy bonus at a share of the run. */
export function entropyFactor(
  {
    entropySchedulerType = "constant",
    entropyMinRate = 0,
  }: { readonly entropySchedulerType?: EntropySchedule; readonly entropyMinRate?: number },
  progress: number,
): number {
  return entropyMinRate + (1 - entropyMinRate) * scheduleFactor(entropySchedulerType, progress);
}

/** @throws INVALID_ARGUMENT where entropies are weighted but missing. */
export function checkEntropy(algorithm: string, entropyCoef: number, entropy: Node | undefined): void {
  if (entropyCoef === 0 || entropy !== undefined) return;
  throw invalidArgument(
    `${algorithm}'s entropyCoef is ${entropyCoef}, but the graph has no entropy: create it with { entropy: "gradient" }.`,
  );
}
