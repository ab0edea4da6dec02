import { invalidArgument } from "../../../core/errors.js";
import type { Env, ResetOptions, ResetResult } from "../../env.js";
import type { JsonValue } from "../../../core/json.js";
import { andThen, type MaybePromise } from "../../../core/maybe-promise.js";
import { batchValues, batchSpace } from "../../spaces/batch.js";
import { createZeroValue } from "../../spaces/zero-value.js";
import { ObservationWrapper } from "../../wrapper.js";

/** Options of `FrameStack`. */
export interface FrameStackOptions {
  /** Number of stacked observations. */
  readonly stackSize: number;
  /** Padding before the first observation: that observation, or the zero value of the space. */
  readonly padding?: "reset" | "zero";
}

/** Stacks the last observations along a new first axis, oldest first. */
export class FrameStackObservation<Action> extends ObservationWrapper<unknown, Action> {
  private readonly stackSize: number;
  private readonly padding: "reset" | "zero";
  private frames: unknown[] = [];

  constructor(env: Env<unknown, Action>, { stackSize, padding = "reset" }: FrameStackOptions) {
    if (!(Number.isInteger(stackSize) && stackSize > 0)) {
      throw invalidArgument(`stackSize must be an integer above 0, got ${stackSize}.`);
    }
    super(env, batchSpace(env.observationSpace, stackSize));
    this.stackSize = stackSize;
    this.padding = padding;
  }

  override reset(options?: ResetOptions): MaybePromise<ResetResult<unknown>> {
    return andThen(this.env.reset(options), (result) => {
      const first = this.padding === "reset" ? result.observation : createZeroValue(this.env.observationSpace);
      this.frames = Array.from({ length: this.stackSize }, () => first);
      return { ...result, observation: this.observation(result.observation) };
    });
  }

  override observation(observation: unknown): unknown {
    this.frames = [...this.frames.slice(1), observation];
    return batchValues(this.env.observationSpace, this.frames);
  }

  protected override saveState(): JsonValue {
    return this.frames.map((frame) => this.env.observationSpace.encode(frame));
  }

  protected override loadState(state: JsonValue): void {
    this.frames = (state as readonly JsonValue[]).map((frame) => this.env.observationSpace.decode(frame));
  }
}
