/** A violation of the Z-machine standard or of a limit. */
export class StoryError extends Error {
  override readonly name = "StoryError";
}

/** Work limit between two inputs, about one unit per instruction or character. */
export class InstructionBudget {
  remaining: number;

  constructor(private readonly limit: number) {
    this.remaining = limit;
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
