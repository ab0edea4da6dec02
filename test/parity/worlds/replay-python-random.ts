import { PythonRandom } from "../../../src/core/random/python-random.js";

/** Draws of one seed, in the order of the fields. */
export interface PythonRandomCase {
  readonly seed: string;
  readonly bits32: number[];
  readonly random: number[];
  readonly randint_1_6: number[];
  readonly randint_5_25: number[];
  readonly shuffles: number[][];
  readonly choice: string[];
  readonly sample: number[];
  readonly uniform: number[];
}

/** Draws again what a case recorded. */
export function replayPythonRandom(recorded: PythonRandomCase): PythonRandomCase {
  const random = new PythonRandom(BigInt(recorded.seed));
  const repeat = <T>(like: readonly unknown[], draw: () => T): T[] => like.map(draw);
  const deck = [0, 1, 2];
  return {
    seed: recorded.seed,
    bits32: repeat(recorded.bits32, () => random.getRandBits(32)),
    random: repeat(recorded.random, () => random.random()),
    randint_1_6: repeat(recorded.randint_1_6, () => random.randInt(1, 6)),
    randint_5_25: repeat(recorded.randint_5_25, () => random.randInt(5, 25)),
    shuffles: repeat(recorded.shuffles, () => {
      random.shuffle(deck);
      return [...deck];
    }),
    choice: repeat(recorded.choice, () => random.choice("abcdefg")),
    sample: random.sample([...Array(40).keys()], recorded.sample.length),
    uniform: repeat(recorded.uniform, () => random.uniform(-1, 3)),
  };
}
