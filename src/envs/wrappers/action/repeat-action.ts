import { invalidArgument } from "../../../core/errors.js";
import type { Env, StepResult } from "../../env.js";
import { andThen, type MaybePromise } from "../../../core/maybe-promise.js";
import { PassThroughWrapper } from "../../wrapper.js";

/** Repeats every action and sums the rewards, until the episode ends. */
export class RepeatAction<Observation, Action> extends PassThroughWrapper<Observation, Action> {
  private readonly repeats: number;

  constructor(env: Env<Observation, Action>, { numRepeats }: { readonly numRepeats: number }) {
    super(env);
    if (!(Number.isInteger(numRepeats) && numRepeats >= 1)) {
      throw invalidArgument(`numRepeats must be an integer above 0, got ${numRepeats}.`);
    }
    this.repeats = numRepeats;
  }

  override step(action: Action): MaybePromise<StepResult<Observation>> {
    return this.repeat(action, this.repeats, 0);
  }

  private repeat(action: Action, remaining: number, totalReward: number): MaybePromise<StepResult<Observation>> {
    return andThen(this.env.step(action), (result) => {
      const reward = totalReward + result.reward;
      const isDone = remaining === 1 || result.terminated || result.truncated;
      return isDone ? { ...result, reward } : this.repeat(action, remaining - 1, reward);
    });
  }
}
