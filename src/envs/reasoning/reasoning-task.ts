import type { RandomStream } from "../../core/random/random-stream.js";
import type { Solution, Verifier } from "./verifiers.js";

/** A question with its reference answer. */
export interface ReasoningItem extends Solution {
  readonly question: string;
}

/** Lowest and highest value of a draw. */
export type Range = readonly [low: number, high: number];

/** Ranges of one level of difficulty. */
export type LevelSettings = Readonly<Record<string, Range>>;

/** A kind of question: what is drawn at each level, and how answers are scored. */
export interface ReasoningTask {
  /** Reasoning Gym's name. */
  readonly name: string;
  /** The task in a few words. */
  readonly summary: string;
  /** Settings from easy to hard. */
  readonly levels: readonly LevelSettings[];
  /** Level with Reasoning Gym's default settings. */
  readonly defaultLevel: number;
  readonly createItem: (draw: Draw) => ReasoningItem;
  readonly verify: Verifier;
}

/** Random draws of one item within the settings of a level. */
export class Draw {
  constructor(
    readonly random: RandomStream,
    private readonly settings: LevelSettings,
  ) {}

  /** Draws an integer in [low, high]. */
  int(low: number, high: number): number {
    return this.random.integers(low, high + 1);
  }

  /** Draws an integer in a range of the settings. */
  setting(name: string): number {
    return this.int(...this.range(name));
  }

  range(name: string): Range {
    return this.settings[name];
  }

  pick<T>(values: readonly T[]): T {
    return this.random.choice(values);
  }

  /** Draws different values in random order. */
  subset<T>(values: readonly T[], count: number): T[] {
    return this.random.sampleIndices(values.length, count).map((i) => values[i]);
  }

  list<T>(count: number, draw: () => T): T[] {
    return Array.from({ length: count }, draw);
  }
}
