import { printWarningOnce } from "../../core/terminal-text.js";
import { checkAction, checkFields, checkResetResult, checkStepResult } from "../check/env-probe.js";
import { checkSpaces, type Warn } from "../check/check-space.js";
import type { Env, ResetOptions, ResetResult, StepResult } from "../env.js";
import { andThen, type MaybePromise } from "../../core/maybe-promise.js";
import { Wrapper } from "../wrapper.js";

/**
 * Checks the spaces, the fields of every result, actions that are numbers of a list, and the first
 * reset and step in full. Violations are errors; what is questionable goes to `warn` (by default
 * printed, once for each kind of problem).
 */
export class PassiveEnvChecker<Observation, Action> extends Wrapper<Observation, Action> {
  private readonly warn: Warn;
  private hasCheckedReset = false;
  private hasCheckedStep = false;
  private hasWarnedOfAction = false;

  constructor(env: Env<Observation, Action>, { warn }: { warn?: (message: string) => void } = {}) {
    super(env);
    const name = env.toString();
    this.warn = (message, kind = message) => {
      if (warn === undefined) printWarningOnce(`${name}: ${message}`, `${name}: ${kind}`);
      else warn(`${name}: ${message}`);
    };
    checkSpaces(env, this.warn);
  }

  override reset(options?: ResetOptions): MaybePromise<ResetResult<Observation>> {
    return andThen(this.env.reset(options), (result) => {
      if (this.hasCheckedReset) checkFields(result, this.env, "reset");
      else checkResetResult(result, this.env, this.warn);
      this.hasCheckedReset = true;
      return result;
    });
  }

  override step(action: Action): MaybePromise<StepResult<Observation>> {
    return andThen(this.env.step(action), (result) => {
      if (!this.hasWarnedOfAction) this.hasWarnedOfAction = !checkAction(action, this.env.actionSpace, this.warn);
      if (this.hasCheckedStep) checkFields(result, this.env, "step");
      else checkStepResult(result, this.env, this.warn);
      this.hasCheckedStep = true;
      return result;
    });
  }
}
