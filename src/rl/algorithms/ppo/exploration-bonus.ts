import type { ScoredTrajectory } from "../algorithm-definition.js";

/** What the bonus remembers between updates. */
export interface ExplorationState {
  /** Reward of the first turn of the run; undefined before it. */
  readonly firstReward?: number;
  /**
   * Turns so far that tell actions apart: those with another reward, and, where each turn is
   * rewarded, the last turns of tasks.
   */
  readonly signals: number;
}

const INITIAL_EXPLORATION: ExplorationState = { signals: 0 };

/** Number of turns with a signal after which nothing is left of the bonus. */
const MAX_SIGNALS = 64;

/**
 * Rewards turns that lead to a prompt which the trajectory did not have yet, where rewards are too
 * sparse to learn from (episodic novelty, as in Raileanu and Rocktäschel 2020). It falls to 0 in a
 * run's first turns with a signal, so tasks with frequent rewards do without it. An update in which
 * no trajectory has a prompt twice has none.
 */
export class ExplorationBonus {
  private signals: number;
  private firstReward: number | undefined;

  constructor(
    private readonly coefficient: number,
    { signals, firstReward }: ExplorationState = INITIAL_EXPLORATION,
  ) {
    this.signals = signals;
    this.firstReward = firstReward;
  }

  /** Counts the signals of an update and returns the bonuses of its turns. */
  add(trajectories: readonly ScoredTrajectory[]): number[][] {
    if (this.weight > 0) for (const trajectory of trajectories) this.countSignals(trajectory);
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
    const { signals, firstReward } = this;
    return { signals, ...(firstReward === undefined ? {} : { firstReward }) };
  }

  private get weight(): number {
    return this.coefficient * Math.max(0, 1 - this.signals / MAX_SIGNALS);
  }

  private countSignals({ turns, end }: ScoredTrajectory): void {
    for (const { turn } of turns) {
      this.firstReward ??= turn.reward;
      if (turn.reward !== this.firstReward) this.signals++;
    }
    if (end === "terminated" && this.firstReward !== 0) this.signals++;
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
