import { COUNT, PROBABILITY, requireOptions } from "../../core/settings.js";
import { invalidArgument } from "../../core/errors.js";
import type { JsonValue } from "../../core/json.js";
import { andThen, type MaybePromise } from "../../core/maybe-promise.js";
import type { Env, ResetOptions, ResetResult, StepResult } from "../env.js";
import { Box, Discrete, type Space } from "../spaces/index.js";
import type { TextInterface } from "../text-interface.js";
import { ActionWrapper, Wrapper } from "../wrapper.js";
import { requireBox, rescaleBox, type Rescaling } from "./rescale-box.js";

/** Options of `TransformAction`. */
export interface TransformActionOptions<Observation, Action, InnerAction> {
  readonly action: (action: Action) => InnerAction;
  /** Space of the outer actions. Default: the environment's. */
  readonly actionSpace?: Space<Action>;
  /** Text interface. Default: none. */
  readonly text?: TextInterface<Observation, Action>;
}

/** Transforms actions by a function. */
export class TransformAction<Observation, Action, InnerAction = Action> extends ActionWrapper<
  Observation,
  Action,
  InnerAction
> {
  override readonly text: TextInterface<Observation, Action> | undefined;
  override readonly action: (action: Action) => InnerAction;

  constructor(env: Env<Observation, InnerAction>, options: TransformActionOptions<Observation, Action, InnerAction>) {
    requireOptions("TransformAction", options, { action: Function, actionSpace: true, text: true }, ["action"]);
    super(env, options.actionSpace);
    this.action = options.action;
    this.text = options.text;
  }
}

/** Clips actions to the environment's bounds. */
export class ClipAction<Observation> extends ActionWrapper<Observation, Float32Array> {
  override readonly text: TextInterface<Observation, Float32Array> | undefined;
  private readonly box: Box<"float32">;

  constructor(env: Env<Observation, Float32Array>) {
    const box = requireBox(env.actionSpace, "ClipAction", "action");
    super(env, new Box(-Infinity, Infinity, { shape: box.shape, dtype: box.dtype }));
    this.box = box;
    this.text = env.text;
  }

  override action(action: Float32Array): Float32Array {
    const { low, high } = this.box;
    return this.box.array(Array.from(action, (value, i) => Math.min(Math.max(value, low[i]), high[i])));
  }
}

/** Rescales actions from new bounds to the environment's bounds. */
export class RescaleAction<Observation> extends ActionWrapper<Observation, Float32Array> {
  private readonly rescaling: Rescaling;

  constructor(
    env: Env<Observation, Float32Array>,
    options: { readonly minAction: number; readonly maxAction: number },
  ) {
    requireOptions("RescaleAction", options, { minAction: Number, maxAction: Number });
    const { minAction, maxAction } = options;
    const rescaling = rescaleBox(requireBox(env.actionSpace, "RescaleAction", "action"), minAction, maxAction);
    super(env, rescaling.box);
    this.rescaling = rescaling;
  }

  override action(action: Float32Array): Float32Array {
    return this.rescaling.backward(action);
  }
}

/** Repeats every action and sums the rewards, until the episode ends. */
export class RepeatAction<Observation, Action> extends Wrapper<Observation, Action> {
  private readonly repeats: number;

  constructor(env: Env<Observation, Action>, options: { readonly numRepeats: number }) {
    super(env);
    requireOptions("RepeatAction", options, { numRepeats: COUNT });
    this.repeats = options.numRepeats;
  }

  override step(action: Action): MaybePromise<StepResult<Observation>> {
    return this.repeat(action, this.repeats, 0);
  }

  private repeat(action: Action, remaining: number, totalReward: number): MaybePromise<StepResult<Observation>> {
    return andThen(this.env.step(action), (result) => {
      const reward = totalReward + result.reward;
      const isDone = remaining === 1 || result.terminated || result.truncated;
      return isDone ? { ...result, reward } : this.repeat(action, remaining - 1, reward);
    });
  }
}

/** Options of `StickyAction`. */
export interface StickyActionOptions {
  /** Probability of repeating the last action. */
  readonly repeatActionProbability: number;
  /** Number of repeated steps, or a range to draw it from. */
  readonly repeatActionDuration?: number | readonly [min: number, max: number];
}

/**
 * Randomly repeats the last action (Machado et al. 2018, section 5.2), with the environment's
 * random stream.
 */
export class StickyAction<Observation, Action> extends ActionWrapper<Observation, Action> {
  override readonly text: TextInterface<Observation, Action> | undefined;
  private readonly probability: number;
  private readonly duration: readonly [min: number, max: number];
  private lastAction: Action | undefined;
  private repeatsLeft = 0;

  constructor(env: Env<Observation, Action>, options: StickyActionOptions) {
    super(env);
    const names = { repeatActionProbability: PROBABILITY, repeatActionDuration: true };
    requireOptions("StickyAction", options, names, ["repeatActionProbability"]);
    const { repeatActionProbability, repeatActionDuration: duration = 1 } = options;
    const [min, max] = Array.isArray(duration) ? duration : [duration, duration];
    if (!Number.isInteger(min) || !Number.isInteger(max) || min < 1 || max < min)
      throw invalidArgument(
        `repeatActionDuration must be an integer above 0 or a pair of them in order, got ${String(duration)}.`,
      );
    this.probability = repeatActionProbability;
    this.duration = [min, max];
    this.text = env.text;
  }

  override reset(options?: ResetOptions): MaybePromise<ResetResult<Observation>> {
    this.lastAction = undefined;
    this.repeatsLeft = 0;
    return this.env.reset(options);
  }

  override action(action: Action): Action {
    const { lastAction } = this;
    if (this.repeatsLeft === 0 && lastAction !== undefined && this.random.uniform() < this.probability)
      this.repeatsLeft = this.random.integers(this.duration[0], this.duration[1] + 1);
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

/**
 * Discretizes a Box of actions into the centers of equal bins, the last element's bins first. With
 * a text interface, each bin's action becomes a choice.
 */
export class DiscretizeAction<Observation> extends ActionWrapper<Observation, number, Float32Array> {
  override readonly text: TextInterface<Observation, number> | undefined;
  private readonly inner: Box<"float32">;
  /** Bin centers of each element. */
  private readonly binCenters: readonly (readonly number[])[];

  /** @param bins number of bins, for all elements or per element */
  constructor(env: Env<Observation, Float32Array>, options: { readonly bins: number | readonly number[] }) {
    requireOptions("DiscretizeAction", options, { bins: true });
    const { bins } = options;
    const inner = requireBox(env.actionSpace, "DiscretizeAction", "action");
    if (!inner.isBounded()) throw invalidArgument(`DiscretizeAction needs finite bounds, got ${inner.toString()}.`);
    const counts = Array.isArray(bins) ? bins : Array.from(inner.low, () => bins);
    if (counts.length !== inner.flatSize || !counts.every((count) => Number.isInteger(count) && count > 0))
      throw invalidArgument(`bins must be a number above 0, or ${inner.flatSize} of them, got ${counts.join(", ")}.`);
    super(env, new Discrete(counts.reduce((total, count) => total * count, 1)));
    this.inner = inner;
    this.binCenters = counts.map((count, i) => computeBinCenters(inner.low[i], inner.high[i], count));
    this.text = env.text && this.createTextInterface(env.text);
  }

  override action(action: number): Float32Array {
    let rest = action;
    const values = this.binCenters.map(() => 0);
    for (let i = this.binCenters.length - 1; i >= 0; i--) {
      const binCenters = this.binCenters[i];
      values[i] = binCenters[rest % binCenters.length];
      rest = Math.floor(rest / binCenters.length);
    }
    return this.inner.array(values);
  }

  /** Finds the action with the nearest bin centers. */
  private findNearestAction(values: Float32Array): number {
    return this.binCenters.reduce((action, binCenters, i) => {
      const distances = binCenters.map((center) => Math.abs(center - values[i]));
      return action * binCenters.length + distances.indexOf(Math.min(...distances));
    }, 0);
  }

  private createTextInterface(inner: TextInterface<Observation, Float32Array>): TextInterface<Observation, number> {
    const { n } = this.actionSpace as Discrete;
    const choices = Array.from({ length: n }, (_, i) => inner.formatAction(this.action(i)));
    return {
      systemPrompt: inner.systemPrompt,
      formatObservation: (observation, info) => inner.formatObservation(observation, info),
      parseAction: (completion) => {
        const parsed = inner.parseAction(completion);
        return parsed && this.findNearestAction(parsed);
      },
      formatAction: (action) => choices[action],
      choices,
    };
  }
}

/** In float32, as the bounds are. */
function computeBinCenters(low: number, high: number, count: number): number[] {
  const width = Math.fround(Math.fround(high - low) / count);
  const computeEdge = (i: number) => (i === count ? high : Math.fround(Math.fround(i * width) + low));
  return Array.from({ length: count }, (_, i) => Math.fround(0.5 * Math.fround(computeEdge(i) + computeEdge(i + 1))));
}
