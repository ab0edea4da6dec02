import { knownReturns } from "../envs/index.js";

interface EnvSummary {
  /** What it is about, in a few words. */
  readonly what: string;
  /** Mean returns of random actions and the best known one; those of classic tasks are the library's own. */
  readonly random?: number;
  readonly best?: number;
}

/** A line for each registered environment; tasks' returns are those of their pages in docs/environments/. */
const summaries: Readonly<Record<string, EnvSummary>> = {
  "Blackjack-v1": { what: "beat the dealer at cards" },
  "FrozenLake-v1": { what: "cross slippery ice to the goal" },
  "FrozenLake8x8-v1": { what: "cross a larger lake" },
  "CliffWalking-v1": { what: "walk along a cliff" },
  "CliffWalkingSlippery-v1": { what: "walk along a slippery cliff" },
  "Taxi-v4": { what: "fetch a passenger and drop them off" },
  "CartPole-v0": { what: "balance a pole, 200 steps" },
  "CartPole-v1": { what: "balance a pole, 500 steps" },
  "MountainCar-v0": { what: "rock a car up a hill" },
  "MountainCarContinuous-v0": { what: "the same with any force" },
  "Acrobot-v1": { what: "swing a two-link robot up" },
  "Pendulum-v1": { what: "swing a pendulum up and hold it" },
  "TextWorld-v0": { what: "do a task in a text adventure", random: 0.08, best: 1 },
  "Bandit-v0": { what: "choose between arms with misleading names", random: 5, best: 8 },
  "BullsAndCows-v0": { what: "find a number from hints", random: 0.001, best: 1 },
  "Calculator-v0": { what: "compute with a tool", random: 0, best: 1 },
  "GuessNumber-v0": { what: "find a number by halving", random: 0.07, best: 1 },
  "Sokoban-v0": { what: "push boxes onto targets", random: -6.1, best: 10.2 },
  "TwentyFortyEight-v0": { what: "merge tiles", random: 1111, best: 600_000 },
  "WebShop-v0": { what: "find and buy what was asked for", random: 0.31, best: 1 },
  "Wordle-v0": { what: "find a word of five letters", random: 0, best: 1 },
};

/** What is known of an id; of one that a program registered itself, nothing. */
export function summaryOf(id: string): EnvSummary {
  const summary = Object.hasOwn(summaries, id) ? summaries[id] : { what: "" };
  const { random, best } = Object.hasOwn(knownReturns, id) ? knownReturns[id] : summary;
  return { ...summary, random, best };
}
