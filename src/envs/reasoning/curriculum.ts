import { invalidArgument } from "../../core/errors.js";
import { andThen, type MaybePromise } from "../../core/maybe-promise.js";
import type { Env, StepResult } from "../env.js";
import { readCounts } from "../env-options.js";
import { Wrapper } from "../wrapper.js";

/** An environment with levels of difficulty. */
export interface LeveledEnv<Observation = unknown, Action = unknown> extends Env<Observation, Action> {
  /** Level from the next reset on, 0 to `maxLevel`. */
  level: number;
  readonly maxLevel: number;
}

/** Options of `CurriculumWrapper`. */
export interface CurriculumOptions {
  /** Mean return above which the next level follows. Default 0.7. */
  readonly increaseAbove?: number;
  /** Mean return below which the level before it follows. Default 0.1. */
  readonly decreaseBelow?: number;
  /** Episodes of a mean. Default 20. */
  readonly episodes?: number;
}

/** The return of the running episode, and those at the present level, as plain JSON. */
type CurriculumState = { readonly running: number; readonly returns: readonly number[] };

const EMPTY_STATE: CurriculumState = { running: 0, returns: [] };

/** Moves an environment's level by the mean return of its episodes at that level. */
export class CurriculumWrapper<Observation = unknown, Action = unknown> extends Wrapper<Observation, Action> {
  protected override wrapperState: CurriculumState = EMPTY_STATE;
  private readonly increaseAbove: number;
  private readonly decreaseBelow: number;
  private readonly episodes: number;

  constructor(
    private readonly leveled: LeveledEnv<Observation, Action>,
    options: CurriculumOptions = {},
  ) {
    super(leveled);
    const shares = { increaseAbove: 0.7, decreaseBelow: 0.1 };
    const counts = readCounts("CurriculumWrapper", options, { episodes: [20, 1, 100_000] }, shares);
    const { increaseAbove, decreaseBelow, episodes } = counts;
    if (!(decreaseBelow <= increaseAbove))
      throw invalidArgument(
        `CurriculumWrapper: decreaseBelow must be at most increaseAbove, got ${decreaseBelow} and ${increaseAbove}.`,
      );
    this.increaseAbove = increaseAbove;
    this.decreaseBelow = decreaseBelow;
    this.episodes = episodes;
  }

  override step(action: Action): MaybePromise<StepResult<Observation>> {
    return andThen(this.leveled.step(action), (result) => {
      const running = this.wrapperState.running + result.reward;
      if (result.terminated || result.truncated) this.finishEpisode(running);
      else this.wrapperState = { ...this.wrapperState, running };
      return result;
    });
  }

  private finishEpisode(total: number): void {
    const returns = [...this.wrapperState.returns, total];
    this.wrapperState = returns.length < this.episodes ? { running: 0, returns } : EMPTY_STATE;
    if (returns.length < this.episodes) return;
    const mean = returns.reduce((sum, value) => sum + value, 0) / returns.length;
    const { level, maxLevel } = this.leveled;
    if (mean > this.increaseAbove) this.leveled.level = Math.min(level + 1, maxLevel);
    else if (mean < this.decreaseBelow) this.leveled.level = Math.max(level - 1, 0);
  }
}
