import { COUNT, integerFrom, oneOf, requireOptions } from "../../core/settings.js";
import type { JsonValue } from "../../core/json.js";
import { andThen, type MaybePromise } from "../../core/maybe-promise.js";
import type { Env, ResetOptions, ResetResult } from "../env.js";
import { batchSpace, batchValues, createZeroValue, flattenSpace, type FlatBox, type Space } from "../spaces/index.js";
import type { TextInterface } from "../text-interface.js";
import { ObservationWrapper } from "../wrapper.js";
import { requireBox, rescaleBox, type Rescaling } from "./rescale-box.js";

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
  override readonly observation: (observation: InnerObservation) => Observation;

  constructor(
    env: Env<InnerObservation, Action>,
    options: TransformObservationOptions<Observation, Action, InnerObservation>,
  ) {
    const names = { observation: Function, observationSpace: true, text: true };
    requireOptions("TransformObservation", options, names, ["observation"]);
    super(env, options.observationSpace);
    this.observation = options.observation;
    this.text = options.text;
  }
}

/** Flattens observations to one array of numbers: categories one-hot, parts concatenated. */
export class FlattenObservation<Action> extends ObservationWrapper<Float64Array, Action, unknown> {
  constructor(env: Env<unknown, Action>) {
    super(env, flattenSpace(env.observationSpace));
  }

  override observation(observation: unknown): Float64Array {
    return (this.observationSpace as FlatBox).array(this.env.observationSpace.flatten(observation));
  }
}

/** Rescales observations of a bounded Box to other bounds. */
export class RescaleObservation<Action> extends ObservationWrapper<Float32Array, Action> {
  private readonly rescaling: Rescaling;

  constructor(
    env: Env<Float32Array, Action>,
    options: { readonly minObservation: number; readonly maxObservation: number },
  ) {
    requireOptions("RescaleObservation", options, { minObservation: Number, maxObservation: Number });
    const { minObservation, maxObservation } = options;
    const box = requireBox(env.observationSpace, "RescaleObservation", "observation");
    const rescaling = rescaleBox(box, minObservation, maxObservation);
    super(env, rescaling.box);
    this.rescaling = rescaling;
  }

  override observation(observation: Float32Array): Float32Array {
    return this.rescaling.forward(observation);
  }
}

/** A wrapper that keeps recent observations of its environment. */
abstract class FrameWrapper<Observation, Action, Inner> extends ObservationWrapper<Observation, Action, Inner> {
  protected frames: Inner[] = [];

  protected override saveState(): JsonValue {
    return this.frames.map((frame) => this.env.observationSpace.encode(frame));
  }

  protected override loadState(state: JsonValue): void {
    this.frames = (state as readonly JsonValue[]).map((frame) => this.env.observationSpace.decode(frame));
  }
}

/** Delays observations by `delay` steps, starting with the zero value of the space. */
export class DelayObservation<Observation, Action> extends FrameWrapper<Observation, Action, Observation> {
  override readonly text: TextInterface<Observation, Action> | undefined;
  private readonly delay: number;

  constructor(env: Env<Observation, Action>, options: { readonly delay: number }) {
    super(env);
    requireOptions("DelayObservation", options, { delay: integerFrom(0) });
    this.delay = options.delay;
    this.text = env.text;
  }

  override reset(options?: ResetOptions): MaybePromise<ResetResult<Observation>> {
    this.frames = [];
    return super.reset(options);
  }

  override observation(observation: Observation): Observation {
    this.frames.push(observation);
    if (this.frames.length <= this.delay) return createZeroValue(this.observationSpace);
    return this.frames.shift() as Observation;
  }
}

/** Options of `FrameStack`. */
export interface FrameStackOptions {
  /** Number of stacked observations. */
  readonly stackSize: number;
  /** Padding before the first observation: that observation, or the zero value of the space. */
  readonly padding?: "reset" | "zero";
}

/** Stacks the last observations along a new first axis, oldest first. */
export class FrameStackObservation<Action> extends FrameWrapper<unknown, Action, unknown> {
  private readonly stackSize: number;
  private readonly padding: "reset" | "zero";

  constructor(env: Env<unknown, Action>, options: FrameStackOptions) {
    const names = { stackSize: COUNT, padding: oneOf("reset", "zero") };
    requireOptions("FrameStackObservation", options, names, ["stackSize"]);
    const { stackSize, padding = "reset" } = options;
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
}
