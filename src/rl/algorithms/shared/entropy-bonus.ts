import { choice } from "../../../core/settings.js";
import type { Node } from "../../../engine/graph/index.js";
import { invalidArgument } from "../../../core/errors.js";

/** The setting entropySchedulerType, without its source. */
export const ENTROPY_SCHEDULE = choice({
  default: "constant",
  choices: ["constant", "linear", "cosine"],
  description: "Schedule of the entropy bonus.",
});

/** @throws INVALID_ARGUMENT where entropies are weighted but missing. */
export function checkEntropy(algorithm: string, entropyCoef: number, entropy: Node | undefined): void {
  if (entropyCoef === 0 || entropy !== undefined) return;
  throw invalidArgument(
    `${algorithm}'s entropyCoef is ${entropyCoef}, but the graph has no entropy: create it with { entropy: "gradient" }.`,
  );
}
