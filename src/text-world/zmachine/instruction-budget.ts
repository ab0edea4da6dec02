import { StoryError } from "./story-error.js";

/** How much work a story may do before it must ask for input: about one unit an instruction or character. */
export class InstructionBudget {
  remaining = 0;

  constructor(private readonly limit: number) {
    this.refill();
  }

  refill(): void {
    this.remaining = this.limit;
  }

  /** Throws StoryError when the work is more than what is left. */
  spend(work: number): void {
    this.remaining -= work;
    if (this.remaining < 0) throw new StoryError(`it did not ask for input within ${this.limit} instructions`);
  }
}
