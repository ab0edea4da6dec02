import { checkResetResult, checkStepResult } from "../check/check-result.js";
import { checkSpace, type Warn } from "../check/check-space.js";
import type { Env, ResetOptions, ResetResult, StepResult } from "../env.js";
import { andThen, type MaybePromise } from "../../core/maybe-promise.js";
import { PassThroughWrapper } from "../wrapper.js";

/**
 * Checks the spaces and the first reset and step. Violations are errors; questionable results go to
 * `warn` (default: console.warn).
 */
export class PassiveEnvChecker<Observation, Action> extends PassThroughWrapper<Observation, Action> {
  private readonly warn: Warn;
  private hasCheckedReset = false;
  private hasCheckedStep = false;

  constructor(env: Env<Observation, Action>, { warn = console.warn }: { warn?: Warn } = {}) {
    super(env);
    this.warn = (message) => warn(`${env.toString()}: ${message}`);
    checkSpace(env.actionSpace, "action", this.warn);
    checkSpace(env.observationSpace, "observation", this.warn);
  }

  override reset(options?: ResetOptions): MaybePromise<ResetResult<Observation>> {
    const result = this.env.reset(options);
    if (this.hasCheckedReset) return result;
    this.hasCheckedReset = true;
    return andThen(result, (checked) => {
      checkResetResult(checked, this.observationSpace, this.warn);
      return checked;
    });
  }

  override step(action: Action): MaybePromise<StepResult<Observation>> {
    const result = this.env.step(action);
    if (this.hasCheckedStep) return result;
    this.hasCheckedStep = true;
    return andThen(result, (checked) => {
      checkStepResult(checked, this.observationSpace, this.warn);
      return checked;
    });
  }
}
