import { LlamaGymError } from "../../core/errors.js";
import type { RenderFrame, RenderMode, ResetOptions, ResetResult, StepResult } from "../env.js";
import type { JsonValue } from "../../core/json.js";
import { andThen, type MaybePromise } from "../../core/maybe-promise.js";
import { PassThroughWrapper } from "../wrapper.js";

/** Rejects steps before the first reset or after an episode's end, and rendering before the first reset. */
export class OrderEnforcing<Observation, Action> extends PassThroughWrapper<Observation, Action> {
  private hasReset = false;
  private hasEnded = false;

  override reset(options?: ResetOptions): MaybePromise<ResetResult<Observation>> {
    this.hasReset = true;
    this.hasEnded = false;
    return this.env.reset(options);
  }

  override step(action: Action): MaybePromise<StepResult<Observation>> {
    if (!this.hasReset) {
      throw new LlamaGymError("ENV_NOT_RESET", "Cannot call env.step() before calling env.reset()");
    }
    if (this.hasEnded) {
      throw new LlamaGymError("ENV_NOT_RESET", "The episode has ended. Call env.reset() before the next env.step()");
    }
    return andThen(this.env.step(action), (result) => {
      this.hasEnded = result.terminated || result.truncated;
      return result;
    });
  }

  override render(mode: RenderMode): MaybePromise<RenderFrame> {
    if (!this.hasReset) {
      throw new LlamaGymError("ENV_NOT_RESET", "Cannot call env.render() before calling env.reset()");
    }
    return this.env.render(mode);
  }

  protected override saveState(): JsonValue {
    return { hasReset: this.hasReset, hasEnded: this.hasEnded };
  }

  protected override loadState(json: JsonValue): void {
    const { hasReset, hasEnded } = json as { hasReset: boolean; hasEnded: boolean };
    this.hasReset = hasReset;
    this.hasEnded = hasEnded;
  }
}
