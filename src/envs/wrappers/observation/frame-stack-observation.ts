import { LlamaGymError } from "../../../core/errors.js";
import type { Env, ResetOptions, ResetResult } from "../../env.js";
import type { JsonValue } from "../../../core/json.js";
import { andThen, type MaybePromise } from "../../../core/maybe-promise.js";
import { batchValues, batchSpace } from "../../spaces/batch.js";
import { createZeroValue } from "../../spaces/zero-value.js";
import { ObservationWrapper } from "../../wrapper.js";

export interface FrameStackOptions {
  /** How many observations are shown at once. */
  readonly stackSize: number;
  /** What stands before the first observation: that observation again, or the zero of the space. */
  readonly padding?: "reset" | "zero";
}

/** Shows the last observations at once, oldest first, along a new first axis. */
export class FrameStackObservation<Action> extends ObservationWrapper<unknown, Action> {
  private readonly stackSize: number;
  private readonly padding: "reset" | "zero";
  private frames: unknown[] = [];

  constructor(env: Env<unknown, Action>, { stackSize, padding = "reset" }: FrameStackOptions) {
    if (!(Number.isInteger(stackSize) && stackSize > 0)) {
      throw new LlamaGymError("INVALID_ARGUMENT", `stackSize must be an integer above 0, got ${stackSize}.`);
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
