import { invalidArgument } from "../../../core/errors.js";
import type { Env, ResetOptions, ResetResult } from "../../env.js";
import type { JsonValue } from "../../../core/json.js";
import type { MaybePromise } from "../../../core/maybe-promise.js";
import { createZeroValue } from "../../spaces/zero-value.js";
import type { TextInterface } from "../../text-interface.js";
import { ObservationWrapper } from "../../wrapper.js";

/** Delays observations by `delay` steps, starting with the zero value of the space. */
export class DelayObservation<Observation, Action> extends ObservationWrapper<Observation, Action> {
  override readonly text: TextInterface<Observation, Action> | undefined;
  private readonly delay: number;
  private pendingObservations: Observation[] = [];

  constructor(env: Env<Observation, Action>, { delay }: { readonly delay: number }) {
    super(env, env.observationSpace);
    if (!(Number.isInteger(delay) && delay >= 0)) {
      throw invalidArgument(`delay must be an integer of at least 0, got ${delay}.`);
    }
    this.delay = delay;
    this.text = env.text;
  }

  override reset(options?: ResetOptions): MaybePromise<ResetResult<Observation>> {
    this.pendingObservations = [];
    return super.reset(options);
  }

  override observation(observation: Observation): Observation {
    this.pendingObservations.push(observation);
    if (this.pendingObservations.length <= this.delay) return createZeroValue(this.observationSpace);
    return this.pendingObservations.shift() as Observation;
  }

  protected override saveState(): JsonValue {
    return this.pendingObservations.map((observation) => this.observationSpace.encode(observation));
  }

  protected override loadState(state: JsonValue): void {
    this.pendingObservations = (state as readonly JsonValue[]).map((observation) =>
      this.observationSpace.decode(observation),
    );
  }
}
