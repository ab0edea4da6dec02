import { input, mul, type Node } from "../../../engine/graph/index.js";
import { tensor, type FloatTensor } from "../../../engine/tensor/tensor.js";
import { SCHEDULES } from "../../../engine/optim/schedule.js";
import { invalidArgument } from "../../../core/settings.js";

/** The setting entropySchedulerType, but for its source. */
export const ENTROPY_SCHEDULE = {
  default: "constant",
  choices: SCHEDULES,
  description: "how the entropy bonus falls over the run",
} as const;

/** Throws INVALID_ARGUMENT where entropies are weighted, but there are none. */
export function checkEntropy(algorithm: string, entropyCoef: number, entropy: Node | undefined): void {
  if (entropyCoef === 0 || entropy !== undefined) return;
  throw invalidArgument(
    `${algorithm}'s entropyCoef is ${entropyCoef}, but the graph gives no entropy: ask for { entropy: "gradient" }.`,
  );
}

/** The weight of the entropy bonus, less as a run goes on: an input, "entropyFactor", multiplies it. */
export function entropyWeight(entropyCoef: number): Node {
  return mul(input("entropyFactor", "float32", []), entropyCoef);
}

/** The input of `entropyWeight`; none without an entropy bonus. */
export function entropyFactorInput(factor: number | undefined): { readonly entropyFactor?: FloatTensor } {
  return factor === undefined ? {} : { entropyFactor: tensor("float32", [], Float32Array.of(factor)) };
}
