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
 * run's first turns with a signal, so tasks with frequent rewards do without it.
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
    const { weight } = this;
    if (weight === 0) return trajectories.map(({ turns }) => turns.map(() => 0));
    return trajectories.map((trajectory) => findNewPrompts(trajectory).map((isNew) => (isNew ? weight : 0)));
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

/** Returns for each turn whether the prompt after it is the first of its kind. */
function findNewPrompts({ turns, bootstrapPrompt }: ScoredTrajectory): boolean[] {
  const prompts = [...turns.map(({ turn }) => turn.prompt), bootstrapPrompt].map((prompt) => prompt?.join());
  const seen = new Set([prompts[0]]);
  return prompts.slice(1).map((prompt) => prompt !== undefined && seen.size !== seen.add(prompt).size);
}
