import { LlamaGymError } from "../../errors.js";
import type { RenderFrame, RenderMode, ResetOptions, ResetResult, StepResult } from "../env.js";
import type { JsonValue } from "../json.js";
import type { MaybePromise } from "../maybe-promise.js";
import { PassThroughWrapper } from "../wrapper.js";

/** Makes a step, or a picture, before the first reset an error. */
export class OrderEnforcing<Observation, Action> extends PassThroughWrapper<Observation, Action> {
  private hasReset = false;

  override reset(options?: ResetOptions): MaybePromise<ResetResult<Observation>> {
    this.hasReset = true;
    return this.env.reset(options);
  }

  override step(action: Action): MaybePromise<StepResult<Observation>> {
    if (!this.hasReset) {
      throw new LlamaGymError("ENV_NOT_RESET", "Cannot call env.step() before calling env.reset()");
    }
    return this.env.step(action);
  }

  override render(mode: RenderMode): MaybePromise<RenderFrame> {
    if (!this.hasReset) {
      throw new LlamaGymError("ENV_NOT_RESET", "Cannot call env.render() before calling env.reset()");
    }
    return this.env.render(mode);
  }

  protected override saveState(): JsonValue {
    return this.hasReset;
  }

  protected override loadState(state: JsonValue): void {
    this.hasReset = state === true;
  }
}
