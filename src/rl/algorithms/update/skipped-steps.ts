import { LlamaGymError } from "../../../core/errors.js";

/** Number of consecutive steps without a finite gradient after which training stops. */
const MAX_SKIPPED_STEPS = 5;

/** Stops training after several consecutive optimizer steps without a finite gradient. */
export class SkippedSteps {
  private consecutive = 0;

  /** Records whether a step was skipped. @throws TRAINING_DIVERGED */
  record(skipped: boolean): void {
    this.consecutive = skipped ? this.consecutive + 1 : 0;
    if (this.consecutive < MAX_SKIPPED_STEPS) return;
    throw new LlamaGymError(
      "TRAINING_DIVERGED",
      `The loss or its gradient was not finite in ${this.consecutive} consecutive optimizer steps, which were skipped. ` +
        "Lower the learning rate, or start from an earlier checkpoint.",
    );
  }
}
