import type { ResetOptions, ResetResult, StepResult } from "../env.js";
import type { JsonValue } from "../../core/json.js";
import { andThen, type MaybePromise } from "../../core/maybe-promise.js";
import { PassThroughWrapper } from "../wrapper.js";

/** Resets in the step after an episode's end, which ignores its action and has reward 0. */
export class Autoreset<Observation, Action> extends PassThroughWrapper<Observation, Action> {
  private hasEnded = false;

  override reset(options?: ResetOptions): MaybePromise<ResetResult<Observation>> {
    this.hasEnded = false;
    return this.env.reset(options);
  }

  override step(action: Action): MaybePromise<StepResult<Observation>> {
    if (this.hasEnded) {
      const started = this.reset();
      return andThen(started, (result) => ({ ...result, reward: 0, terminated: false, truncated: false }));
    }
    return andThen(this.env.step(action), (result) => {
      this.hasEnded = result.terminated || result.truncated;
      return result;
    });
  }

  protected override saveState(): JsonValue {
    return this.hasEnded;
  }

  protected override loadState(state: JsonValue): void {
    this.hasEnded = state === true;
  }
}
