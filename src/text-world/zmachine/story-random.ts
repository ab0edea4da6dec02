/** Seeds below this make the machine count instead (Standard, section 2.4). */
const FIRST_RANDOM_SEED = 1000;

/**
 * The machine's random numbers: a linear congruential generator with the multiplier 22695477 and the upper half of
 * its state as output, which a story's own seed starts. TextWorld's stories seed it with a constant.
 */
export class StoryRandom {
  private state = FIRST_RANDOM_SEED;
  private interval = 0;
  private counter = 0;

  /** The random instruction: a number in 1..range, or 0 after seeding with -range. */
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
    // Seed 0 asks for an unpredictable start; a game that is to be repeatable gets a fixed one.
    this.state = value === 0 ? FIRST_RANDOM_SEED : value;
  }
}
