import { knownReturns, type KnownReturns } from "../../envs/index.js";

/** What each registered environment is about, in a few words. */
const TASK_SUMMARIES: Readonly<Record<string, string>> = {
  "Blackjack-v1": "beat the dealer at cards",
  "FrozenLake-v1": "cross slippery ice to the goal",
  "FrozenLake8x8-v1": "cross a larger lake",
  "CliffWalking-v1": "walk along a cliff",
  "CliffWalkingSlippery-v1": "walk along a slippery cliff",
  "Taxi-v4": "fetch a passenger and drop them off",
  "CartPole-v0": "balance a pole, 200 steps",
  "CartPole-v1": "balance a pole, 500 steps",
  "MountainCar-v0": "rock a car up a hill",
  "MountainCarContinuous-v0": "the same with any force",
  "Acrobot-v1": "swing a two-link robot up",
  "Pendulum-v1": "swing a pendulum up and hold it",
  "TextWorld-v0": "do a task in a text adventure",
  "Bandit-v0": "choose between arms with misleading names",
  "BullsAndCows-v0": "find a number from hints",
  "Calculator-v0": "compute with a tool",
  "GuessNumber-v0": "find a number by halving",
  "Sokoban-v0": "push boxes onto targets",
  "TwentyFortyEight-v0": "merge tiles",
  "WebShop-v0": "find and buy what was asked for",
  "Wordle-v0": "find a word of five letters",
};

/** What is known of an id; of one that a program registered itself, nothing. */
export function getEnvSummary(id: string): { readonly what: string } & Partial<KnownReturns> {
  const known = Object.hasOwn(knownReturns, id) ? knownReturns[id] : {};
  return { what: Object.hasOwn(TASK_SUMMARIES, id) ? TASK_SUMMARIES[id] : "", ...known };
}
