import type { Env } from "../../env.js";
import { flattenSpace, type FlatBox } from "../../spaces/flatten-space.js";
import { ObservationWrapper } from "../../wrapper.js";

/** Flattens observations to one array of numbers: categories one-hot, parts concatenated. */
export class FlattenObservation<Action> extends ObservationWrapper<Float64Array, Action, unknown> {
  private readonly flat: FlatBox;

  constructor(env: Env<unknown, Action>) {
    const flat = flattenSpace(env.observationSpace);
    super(env, flat);
    this.flat = flat;
  }

  override observation(observation: unknown): Float64Array {
    return this.flat.array(this.env.observationSpace.flatten(observation));
  }
}
