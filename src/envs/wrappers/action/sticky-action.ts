import { invalidArgument } from "../../../core/errors.js";
import { checkProbability } from "../../env-options.js";
import type { Env, ResetOptions, ResetResult } from "../../env.js";
import type { JsonValue } from "../../../core/json.js";
import type { MaybePromise } from "../../../core/maybe-promise.js";
import type { TextInterface } from "../../text-interface.js";
import { ActionWrapper } from "../../wrapper.js";

/** Options of `StickyAction`. */
export interface StickyActionOptions {
  /** Probability of repeating the last action. */
  readonly repeatActionProbability: number;
  /** Number of repeated steps, or a range to draw it from. */
  readonly repeatActionDuration?: number | readonly [min: number, max: number];
}

/** Randomly repeats the last action (Machado et al. 2018, section 5.2), with the environment's random stream. */
export class StickyAction<Observation, Action> extends ActionWrapper<Observation, Action> {
  override readonly text: TextInterface<Observation, Action> | undefined;
  private readonly probability: number;
  private readonly duration: readonly [min: number, max: number];
  private lastAction: Action | undefined;
  private repeatsLeft = 0;

  constructor(env: Env<Observation, Action>, options: StickyActionOptions) {
    super(env, env.actionSpace);
    const { repeatActionProbability, repeatActionDuration = 1 } = options;
    checkProbability("StickyAction", "repeatActionProbability", repeatActionProbability);
    const duration =
      typeof repeatActionDuration === "number" ? [repeatActionDuration, repeatActionDuration] : repeatActionDuration;
    if (!duration.every((bound) => Number.isInteger(bound) && bound >= 1) || duration[0] > duration[1]) {
      throw invalidArgument(
        `repeatActionDuration must be an integer above 0 or a pair of them in order, got ${duration.join(", ")}.`,
      );
    }
    this.probability = repeatActionProbability;
    this.duration = [duration[0], duration[1]];
    this.text = env.text;
  }

  override reset(options?: ResetOptions): MaybePromise<ResetResult<Observation>> {
    this.lastAction = undefined;
    this.repeatsLeft = 0;
    return this.env.reset(options);
  }

  override action(action: Action): Action {
    const { lastAction } = this;
    if (this.repeatsLeft === 0 && lastAction !== undefined && this.random.uniform() < this.probability) {
      this.repeatsLeft = this.random.integers(this.duration[0], this.duration[1] + 1);
    }
    const isSticky = this.repeatsLeft > 0;
    if (isSticky) this.repeatsLeft--;
    this.lastAction = isSticky ? (lastAction as Action) : action;
    return this.lastAction;
  }

  protected override saveState(): JsonValue {
    const { lastAction, repeatsLeft } = this;
    return { lastAction: lastAction === undefined ? null : this.actionSpace.encode(lastAction), repeatsLeft };
  }

  protected override loadState(json: JsonValue): void {
    const { lastAction, repeatsLeft } = json as { lastAction: JsonValue; repeatsLeft: number };
    this.lastAction = lastAction === null ? undefined : this.actionSpace.decode(lastAction);
    this.repeatsLeft = repeatsLeft;
  }
}
