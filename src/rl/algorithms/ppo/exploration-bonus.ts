import type { ScoredTrajectory } from "../algorithm-definition.js";

/** What the bonus remembers between updates. */
export interface ExplorationState {
  /** Lowest and highest reward of a turn so far; undefined before the first. */
  readonly lowest?: number;
  readonly highest?: number;
  /** Turns so far that were a success (see ExplorationBonus). */
  readonly successes: number;
}

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

  /** Counts the successes of an update and returns the bonuses of its turns. */
  add(trajectories: readonly ScoredTrajectory[]): number[][] {
    if (this.weight > 0) this.countSuccesses(trajectories);
    const none = () => trajectories.map(({ turns }) => turns.map(() => 0));
    const { weight } = this;
    if (weight === 0) return none();
    const found = trajectories.map(findNewPrompts);
    // Where a prompt never comes again, as with a log of all turns, the bonus would only tell the
    // policy not to end an episode.
    if (!found.some((newness) => newness.includes("seen"))) return none();
    return found.map((newness) => newness.map((each) => (each === "new" ? weight : 0)));
  }

  getState(): ExplorationState {
    const { successes, lowest, highest } = this;
    return lowest > highest ? { successes } : { successes, lowest, highest };
  }

  private get weight(): number {
    return this.coefficient * Math.max(0, 1 - this.successes / MAX_SUCCESSES);
  }

  private countSuccesses(trajectories: readonly ScoredTrajectory[]): void {
    const leastSuccess = trajectories.some(({ end }) => end === "terminated") ? 0 : -Infinity;
    for (const { turns, end } of trajectories) {
      turns.forEach(({ turn: { reward } }, i) => {
        this.lowest = Math.min(this.lowest, reward);
        this.highest = Math.max(this.highest, reward);
        const isRewarded = reward > Math.max(leastSuccess, this.lowest);
        const isBestEnd = end === "terminated" && i === turns.length - 1 && reward === this.highest;
        if (isRewarded || (isBestEnd && (this.lowest < 0 || reward > 0))) this.successes++;
      });
    }
  }
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
