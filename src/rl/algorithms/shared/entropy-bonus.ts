import type { Node } from "../../../engine/graph/index.js";
import { SCHEDULES } from "../../../engine/optim/schedule.js";
import { invalidArgument } from "../../../core/errors.js";

/** The setting entropySchedulerType, but for its source. */
export const ENTROPY_SCHEDULE = {
  default: "constant",
  choices: SCHEDULES,
  description: "Schedule of the entropy bonus.",
} as const;

/** Throws INVALID_ARGUMENT where entropies are weighted, but there are none. */
export function checkEntropy(algorithm: string, entropyCoef: number, entropy: Node | undefined): void {
  if (entropyCoef === 0 || entropy !== undefined) return;
  throw invalidArgument(
    `${algorithm}'s entropyCoef is ${entropyCoef}, but the graph gives no entropy: ask for { entropy: "gradient" }.`,
  );
}
