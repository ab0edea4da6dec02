import { StoryError } from "./story-error.js";

/** Work limit between two inputs, about one unit per instruction or character. */
export class InstructionBudget {
  remaining = 0;

  constructor(private readonly limit: number) {
    this.refill();
  }

  refill(): void {
    this.remaining = this.limit;
  }

  /** @throws StoryError when the work exceeds the remaining budget. */
  spend(work: number): void {
    this.remaining -= work;
    if (this.remaining < 0) throw new StoryError(`it did not ask for input within ${this.limit} instructions`);
  }
}
