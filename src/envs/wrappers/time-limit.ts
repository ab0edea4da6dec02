import { LlamaGymError, invalidArgument } from "../../core/errors.js";
import type { Env, ResetOptions, ResetResult, StepResult } from "../env.js";
import type { JsonValue } from "../../core/json.js";
import { andThen, type MaybePromise } from "../../core/maybe-promise.js";
import { PassThroughWrapper } from "../wrapper.js";

/** Truncates an episode at its `maxEpisodeSteps`-th step. */
export class TimeLimit<Observation, Action> extends PassThroughWrapper<Observation, Action> {
  readonly maxEpisodeSteps: number;
  private elapsedSteps = 0;

  constructor(env: Env<Observation, Action>, { maxEpisodeSteps }: { maxEpisodeSteps: number }) {
    super(env);
    if (!(Number.isInteger(maxEpisodeSteps) && maxEpisodeSteps > 0)) {
      throw invalidArgument(`maxEpisodeSteps must be an integer above 0, actual value: ${maxEpisodeSteps}`);
    }
    this.maxEpisodeSteps = maxEpisodeSteps;
  }

  override reset(options?: ResetOptions): MaybePromise<ResetResult<Observation>> {
    this.elapsedSteps = 0;
    return this.env.reset(options);
  }

  override step(action: Action): MaybePromise<StepResult<Observation>> {
    if (this.elapsedSteps >= this.maxEpisodeSteps) {
      throw new LlamaGymError(
        "ENV_NOT_RESET",
        `The episode was truncated after ${this.maxEpisodeSteps} steps. Call env.reset() before the next env.step()`,
      );
    }
    return andThen(this.env.step(action), (result) => {
      this.elapsedSteps++;
      return this.elapsedSteps >= this.maxEpisodeSteps ? { ...result, truncated: true } : result;
    });
  }

  protected override saveState(): JsonValue {
    return this.elapsedSteps;
  }

  protected override loadState(state: JsonValue): void {
    this.elapsedSteps = Number(state);
  }
}
