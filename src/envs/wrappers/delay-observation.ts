import { LlamaGymError } from "../../errors.js";
import type { Env, ResetOptions, ResetResult } from "../env.js";
import type { JsonValue } from "../json.js";
import type { MaybePromise } from "../maybe-promise.js";
import { zeroValue } from "../spaces/zero-value.js";
import type { TextForm } from "../text-form.js";
import { ObservationWrapper } from "../wrapper.js";

/** Shows each observation `delay` steps late; until the first one arrives, the zero of the space. */
export class DelayObservation<Observation, Action> extends ObservationWrapper<Observation, Action> {
  override readonly text: TextForm<Observation, Action> | undefined;
  private readonly delay: number;
  private waiting: Observation[] = [];

  constructor(env: Env<Observation, Action>, { delay }: { readonly delay: number }) {
    super(env, env.observationSpace);
    if (!(Number.isInteger(delay) && delay >= 0)) {
      throw new LlamaGymError("INVALID_ARGUMENT", `delay must be an integer of at least 0, got ${delay}.`);
    }
    this.delay = delay;
    this.text = env.text;
  }

  override reset(options?: ResetOptions): MaybePromise<ResetResult<Observation>> {
    this.waiting = [];
    return super.reset(options);
  }

  override observation(observation: Observation): Observation {
    this.waiting.push(observation);
    if (this.waiting.length <= this.delay) return zeroValue(this.observationSpace);
    return this.waiting.shift() as Observation;
  }

  protected override saveState(): JsonValue {
    return this.waiting.map((observation) => this.observationSpace.encode(observation));
  }

  protected override loadState(state: JsonValue): void {
    this.waiting = (state as readonly JsonValue[]).map((observation) => this.observationSpace.decode(observation));
  }
}
