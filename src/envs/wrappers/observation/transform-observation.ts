import type { Env } from "../../env.js";
import type { Space } from "../../spaces/space.js";
import type { TextInterface } from "../../text-interface.js";
import { ObservationWrapper } from "../../wrapper.js";

/** Options of `TransformObservation`. */
export interface TransformObservationOptions<Observation, Action, InnerObservation> {
  readonly observation: (observation: InnerObservation) => Observation;
  /** Space of the new observations. Default: the environment's. */
  readonly observationSpace?: Space<Observation>;
  /** Text interface of the new observations. Default: none. */
  readonly text?: TextInterface<Observation, Action>;
}

/** Transforms observations by a function. */
export class TransformObservation<Observation, Action, InnerObservation = Observation> extends ObservationWrapper<
  Observation,
  Action,
  InnerObservation
> {
  override readonly text: TextInterface<Observation, Action> | undefined;
  private readonly transform: (observation: InnerObservation) => Observation;

  constructor(
    env: Env<InnerObservation, Action>,
    options: TransformObservationOptions<Observation, Action, InnerObservation>,
  ) {
    super(env, options.observationSpace ?? (env.observationSpace as Space as Space<Observation>));
    this.transform = options.observation;
    this.text = options.text;
  }

  override observation(observation: InnerObservation): Observation {
    return this.transform(observation);
  }
}
