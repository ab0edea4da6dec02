import { mean } from "../../../core/numbers.js";
import type { ScoredTrajectory } from "../algorithm-definition.js";
import { discountedReturns } from "../shared/discounted-returns.js";
import type { PpoConfig } from "./settings.js";

/** What the bonus remembers between updates. */
export interface ExplorationState {
  /** Lowest and highest reward of a turn so far; undefined before the first. */
  readonly lowest?: number;
  readonly highest?: number;
  /** Turns so far that were a success (see ExplorationBonus). */
  readonly successes: number;
}

/** The bonus of each turn of each trajectory; undefined where there is none to tell. */
type Bonuses = readonly (readonly (number | undefined)[])[];

/** Number of successes after which nothing is left of the bonus. */
const MAX_SUCCESSES = 64;

/**
 * Rewards turns that lead to a prompt which the trajectory did not have yet, where successes are
 * too rare to learn from (episodic novelty, as in Raileanu and Rocktäschel 2020). It falls to 0 in
 * a run's first successes, so tasks with frequent ones do without it. An update in which no
 * trajectory has a prompt twice has none.
 *
 * A turn is a success if its reward is above 0 and above the lowest so far, or if it ends a task
 * with the highest reward so far, unless all rewards were 0. Penalties of steps and of failures are
 * none, since a policy that avoids them may never see more. Where no task of an update ends, as
 * under a time limit alone, rewards have no natural zero, and each above the lowest counts.
 */
export class ExplorationBonus {
  private successes: number;
  private lowest: number;
  private highest: number;

  constructor(
    private readonly coefficient: number,
    // A checkpoint of an earlier version has no count; there, the bonus is over.
    { successes = MAX_SUCCESSES, lowest = Infinity, highest = -Infinity }: Partial<ExplorationState> = { successes: 0 },
  ) {
    this.successes = successes;
    this.lowest = lowest;
    this.highest = highest;
  }

  /**
   * Counts the successes of an update and returns the bonuses of its turns. A trajectory that ends
   * without success loses the turns up to the length of the longest, which have bonuses of 0 after
   * its own; one that ends with success loses none.
   */
  add(trajectories: readonly ScoredTrajectory[]): Bonuses {
    if (this.weight > 0) this.countSuccesses(trajectories);
    const none = () => trajectories.map(({ turns }) => turns.map(() => 0));
    const { weight } = this;
    if (weight === 0) return none();
    const found = trajectories.map(findNewPrompts);
    // Where a prompt never comes again, as with a log of all turns, the bonus would only tell the
    // policy not to end an episode.
    if (!found.some((newness) => newness.includes("seen"))) return none();
    const length = Math.max(...found.map((newness) => newness.length));
    const leastSuccess = getLeastSuccess(trajectories);
    return trajectories.map(({ turns, end }, i) => {
      const bonuses = found[i].map((each) => each && (each === "new" ? weight : 0));
      const isFailure =
        end === "terminated" && !this.isSuccess(turns.at(-1)!.turn.reward, { leastSuccess, isEnd: true });
      if (!isFailure) return bonuses;
      return [...bonuses.slice(0, -1), ...Array.from({ length: length - bonuses.length + 1 }, () => 0)];
    });
  }

  getState(): ExplorationState {
    const { successes, lowest, highest } = this;
    return lowest > highest ? { successes } : { successes, lowest, highest };
  }

  private get weight(): number {
    return this.coefficient * Math.max(0, 1 - this.successes / MAX_SUCCESSES);
  }

  private countSuccesses(trajectories: readonly ScoredTrajectory[]): void {
    const leastSuccess = getLeastSuccess(trajectories);
    for (const { turns, end } of trajectories) {
      turns.forEach(({ turn: { reward } }, i) => {
        this.lowest = Math.min(this.lowest, reward);
        this.highest = Math.max(this.highest, reward);
        const isEnd = end === "terminated" && i === turns.length - 1;
        if (this.isSuccess(reward, { leastSuccess, isEnd })) this.successes++;
      });
    }
  }

  private isSuccess(reward: number, { leastSuccess, isEnd }: { leastSuccess: number; isEnd: boolean }): boolean {
    const { lowest, highest } = this;
    const isRewarded = reward > Math.max(leastSuccess, lowest);
    const isBestEnd = isEnd && reward === highest;
    return isRewarded || (isBestEnd && (lowest < 0 || reward > 0));
  }
}

/** Returns the reward above which a turn may be a success. */
function getLeastSuccess(trajectories: readonly ScoredTrajectory[]): number {
  return trajectories.some(({ end }) => end === "terminated") ? 0 : -Infinity;
}

/**
 * Returns what bonuses add to the advantage of each turn: the discounted sum of the bonuses from it
 * on, each less the mean at its place in a trajectory. The value head predicts rewards alone. As
 * part of the reward, bonuses taught a policy to avoid success, which ended them.
 */
export function bonusAdvantages(
  bonuses: Bonuses,
  { gamma, lam }: Pick<PpoConfig, "gamma" | "lam">,
): readonly (readonly number[])[] {
  const length = bonuses.reduce((longest, row) => Math.max(longest, row.length), 0);
  const means = Array.from({ length }, (_, t) => {
    const given = bonuses.flatMap((row) => row[t] ?? []);
    return given.length === 0 ? 0 : mean(given);
  });
  return bonuses.map((row) => {
    const centered = row.map((bonus, t) => (bonus === undefined ? 0 : bonus - means[t]));
    return Array.from(discountedReturns(centered, { gamma: gamma * lam }));
  });
}

/** Says for each turn whether the prompt after it is new to its trajectory; undefined for none. */
function findNewPrompts({ turns, bootstrapPrompt }: ScoredTrajectory): ("new" | "seen" | undefined)[] {
  const prompts = [...turns.map(({ turn }) => turn.prompt), bootstrapPrompt].map((prompt) => prompt?.join());
  const seen = new Set([prompts[0]]);
  return prompts.slice(1).map((prompt) => {
    if (prompt === undefined) return undefined;
    return seen.size === seen.add(prompt).size ? "seen" : "new";
  });
}
