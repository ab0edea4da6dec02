import type { Env } from "../env.js";
import type { JsonValue } from "../../core/json.js";
import { checkOptions } from "../../core/settings.js";
import { Box, type BoxDtype } from "../spaces/index.js";
import { ObservationWrapper } from "../wrapper.js";
import { requireBox } from "./rescale-box.js";
import { EPSILON, RunningMeanStd } from "./running-mean-std.js";
import { countElements } from "../../core/numbers.js";

/**
 * Normalizes observations to mean 0 and variance 1 over all observations so far. Set
 * `updateRunningMean` to false for an evaluation.
 */
export class NormalizeObservation<Action> extends ObservationWrapper<Float32Array, Action, ArrayLike<number>> {
  updateRunningMean = true;
  private readonly epsilon: number;
  private readonly running: RunningMeanStd;
  private readonly round: (value: number) => number;

  constructor(env: Env<ArrayLike<number>, Action>, options: { readonly epsilon?: number } = {}) {
    checkOptions("NormalizeObservation", options, { epsilon: EPSILON });
    const space = requireBox(env.observationSpace, "NormalizeObservation", "observation") as Box<BoxDtype>;
    super(env, new Box(-Infinity, Infinity, { shape: space.shape }));
    this.epsilon = options.epsilon ?? 1e-8;
    this.round = space.dtype === "float32" ? Math.fround : (value) => value;
    this.running = new RunningMeanStd(countElements(space.shape), this.round);
  }

  override observation(observation: ArrayLike<number>): Float32Array {
    const { round, running } = this;
    if (this.updateRunningMean) running.update(observation);
    const epsilon = round(this.epsilon);
    return Float32Array.from(observation, (value, i) => {
      const deviation = round(Math.sqrt(round(running.variance[i] + epsilon)));
      return round(value - running.mean[i]) / deviation;
    });
  }

  protected override saveState(): JsonValue {
    return this.running.save();
  }

  protected override loadState(state: JsonValue): void {
    this.running.load(state);
  }
}
