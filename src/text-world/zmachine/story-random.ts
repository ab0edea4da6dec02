/** Smaller seeds make the generator count instead (Standard, section 2.4). */
const FIRST_RANDOM_SEED = 1000;

/**
 * Random numbers of the machine: a linear congruential generator with multiplier 22695477 that
 * outputs the upper half of its state. Stories seed it; TextWorld's use a constant.
 */
export class StoryRandom {
  private state = FIRST_RANDOM_SEED;
  private interval = 0;
  private counter = 0;

  /**
   * Executes the random instruction: returns a number in 1..range, or 0 after seeding with -range.
   */
  next(range: number): number {
    if (range <= 0) {
      this.seed(-range);
      return 0;
    }
    if (this.interval > 0) {
      const number = this.counter;
      this.counter = (this.counter + 1) % this.interval;
      return (number % range) + 1;
    }
    this.state = (Math.imul(this.state, 22_695_477) + 1) >>> 0;
    return (((this.state >>> 16) & 0x7fff) % range) + 1;
  }

  seed(value: number): void {
    this.counter = 0;
    this.interval = value > 0 && value < FIRST_RANDOM_SEED ? value : 0;
    // Seed 0 requests an unpredictable seed; games use a fixed one to be reproducible.
    this.state = value === 0 ? FIRST_RANDOM_SEED : value;
  }
}
