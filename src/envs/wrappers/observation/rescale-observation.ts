import type { Env } from "../../env.js";
import { ObservationWrapper } from "../../wrapper.js";
import { requireBox } from "../require-box.js";
import { rescaleBox, type Rescaling } from "../rescale-box.js";

export interface RescaleObservationOptions {
  readonly minObservation: number;
  readonly maxObservation: number;
}

/** Rescales observations of a bounded Box to other bounds. */
export class RescaleObservation<Action> extends ObservationWrapper<Float32Array, Action> {
  private readonly rescaling: Rescaling;

  constructor(env: Env<Float32Array, Action>, { minObservation, maxObservation }: RescaleObservationOptions) {
    const box = requireBox(env.observationSpace, "RescaleObservation", "observation");
    const rescaling = rescaleBox(box, minObservation, maxObservation);
    super(env, rescaling.box);
    this.rescaling = rescaling;
  }

  override observation(observation: Float32Array): Float32Array {
    return this.rescaling.forward(observation);
  }
}
