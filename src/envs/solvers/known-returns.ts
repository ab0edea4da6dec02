/** What an episode brings, so that a learner's curve can be read. */
export interface KnownReturns {
  /** Mean return when every action is drawn at random. */
  readonly random: number;
  /** The best mean return that is known. */
  readonly best: number;
  /**
   * "exact": computed from the rules. "measured": means over 1000 episodes, seeds 1000 to 1999; the best one is that of
   * `experts`. "page": as the environment's page in docs/environments says; there is no expert.
   */
  readonly basis: "exact" | "measured" | "page";
}

/** Random and best known returns by id, with the options and step limits that the ids are registered with. */
export const knownReturns: Readonly<Record<string, KnownReturns>> = {
  "Blackjack-v1": { random: -0.3942, best: -0.0431, basis: "exact" },
  "FrozenLake-v1": { random: 0.0139, best: 0.7442, basis: "exact" },
  "FrozenLake8x8-v1": { random: 0.0019, best: 0.9132, basis: "exact" },
  "CliffWalking-v1": { random: -65375.13, best: -13, basis: "exact" },
  "CliffWalkingSlippery-v1": { random: -65375.13, best: -64.71, basis: "exact" },
  "Taxi-v4": { random: -771.09, best: 7.93, basis: "exact" },
  "CartPole-v0": { random: 22.6, best: 200, basis: "measured" },
  "CartPole-v1": { random: 22.1, best: 500, basis: "measured" },
  "MountainCar-v0": { random: -200, best: -99.1, basis: "measured" },
  "MountainCarContinuous-v0": { random: -32.9, best: 98.2, basis: "measured" },
  "Acrobot-v1": { random: -498.5, best: -75.8, basis: "measured" },
  "Pendulum-v1": { random: -1232, best: -140.7, basis: "measured" },
  "TextWorld-v0": { random: 0.08, best: 1, basis: "page" },
  "Bandit-v0": { random: 5, best: 8, basis: "page" },
  "BullsAndCows-v0": { random: 0.001, best: 1, basis: "page" },
  "Calculator-v0": { random: 0, best: 1, basis: "page" },
  "GuessNumber-v0": { random: 0.07, best: 1, basis: "page" },
  "Sokoban-v0": { random: -6.1, best: 10.2, basis: "page" },
  "TwentyFortyEight-v0": { random: 1111, best: 600_000, basis: "page" },
  "WebShop-v0": { random: 0.31, best: 1, basis: "page" },
  "Wordle-v0": { random: 0, best: 1, basis: "page" },
};
