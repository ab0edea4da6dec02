import { checkOptions, COUNT, requireOptions } from "../../core/settings.js";
import { invalidArgument, LlamaGymError } from "../../core/errors.js";
import { andThen, type MaybePromise } from "../../core/maybe-promise.js";
import type { Env, RenderFrame, RenderMode, ResetOptions, ResetResult, StepResult } from "../env.js";
import { Box, Dict, Tuple, flattenSpace, type FlatBox, type Space } from "../spaces/index.js";
import { ObservationWrapper, Wrapper } from "../wrapper.js";

/** Truncates an episode at its `maxEpisodeSteps`-th step. */
export class TimeLimit<Observation, Action> extends Wrapper<Observation, Action> {
  readonly maxEpisodeSteps: number;
  /** Steps of the episode. */
  protected override wrapperState = 0;

  constructor(env: Env<Observation, Action>, options: { readonly maxEpisodeSteps: number }) {
    super(env);
    requireOptions("TimeLimit", options, { maxEpisodeSteps: COUNT });
    this.maxEpisodeSteps = options.maxEpisodeSteps;
  }

  override reset(options?: ResetOptions): MaybePromise<ResetResult<Observation>> {
    this.wrapperState = 0;
    return this.env.reset(options);
  }

  override step(action: Action): MaybePromise<StepResult<Observation>> {
    if (this.wrapperState >= this.maxEpisodeSteps) {
      const problem = `The episode was truncated after ${this.maxEpisodeSteps} steps.`;
      throw new LlamaGymError("ENV_NOT_RESET", `${problem} Call env.reset() before the next env.step()`);
    }
    return andThen(this.env.step(action), (result) => {
      this.wrapperState++;
      return this.wrapperState >= this.maxEpisodeSteps ? { ...result, truncated: true } : result;
    });
  }
}

/**
 * Rejects steps before the first reset or after an episode's end, and rendering before the first
 * reset.
 */
export class OrderEnforcing<Observation, Action> extends Wrapper<Observation, Action> {
  protected override wrapperState = { hasReset: false, hasEnded: false };

  override reset(options?: ResetOptions): MaybePromise<ResetResult<Observation>> {
    checkOptions("reset", options, { seed: true, options: Object });
    this.wrapperState = { hasReset: true, hasEnded: false };
    return this.env.reset(options);
  }

  override step(action: Action): MaybePromise<StepResult<Observation>> {
    this.requireReset("step");
    if (this.wrapperState.hasEnded)
      throw new LlamaGymError("ENV_NOT_RESET", "The episode has ended. Call env.reset() before the next env.step()");
    return andThen(this.env.step(action), (result) => {
      this.wrapperState.hasEnded = result.terminated || result.truncated;
      return result;
    });
  }

  override render(mode: RenderMode): MaybePromise<RenderFrame> {
    this.requireReset("render");
    return this.env.render(mode);
  }

  private requireReset(method: string): void {
    if (this.wrapperState.hasReset) return;
    throw new LlamaGymError("ENV_NOT_RESET", `Cannot call env.${method}() before calling env.reset()`);
  }
}

/** Resets in the step after an episode's end, which ignores its action and has reward 0. */
export class Autoreset<Observation, Action> extends Wrapper<Observation, Action> {
  /** Whether the episode has ended. */
  protected override wrapperState = false;

  override reset(options?: ResetOptions): MaybePromise<ResetResult<Observation>> {
    this.wrapperState = false;
    return this.env.reset(options);
  }

  override step(action: Action): MaybePromise<StepResult<Observation>> {
    if (this.wrapperState)
      return andThen(this.reset(), (result) => ({ ...result, reward: 0, terminated: false, truncated: false }));
    return andThen(this.env.step(action), (result) => {
      this.wrapperState = result.terminated || result.truncated;
      return result;
    });
  }
}

/** Options of `TimeAware`. */
export interface TimeAwareOptions {
  /** Joins observation and time in one array. */
  readonly flatten?: boolean;
  /** Time as a fraction of the step limit instead of a number of steps. */
  readonly normalizeTime?: boolean;
  /** Key of the time in object observations. */
  readonly timeKey?: string;
}

/** Adds the number of steps so far to the observation. The environment must have a step limit. */
export class TimeAwareObservation<Action> extends ObservationWrapper<unknown, Action> {
  private readonly combined: Space;
  private readonly options: Required<TimeAwareOptions>;
  private readonly limit: number;
  /** Steps of the episode. */
  protected override wrapperState = 0;

  constructor(env: Env<unknown, Action>, options: TimeAwareOptions = {}) {
    checkOptions("TimeAwareObservation", options, { flatten: Boolean, normalizeTime: Boolean, timeKey: String });
    const { flatten = true, normalizeTime = false, timeKey = "time" } = options;
    const limit = findStepLimit(env);
    const timeSpace: Space = normalizeTime ? new Box(0, 1) : new Box(0, limit, { dtype: "int32" });
    const combined = createCombinedSpace(env.observationSpace, timeSpace, timeKey);
    super(env, flatten ? flattenSpace(combined) : combined);
    this.combined = combined;
    this.options = { flatten, normalizeTime, timeKey };
    this.limit = limit;
  }

  override reset(options?: ResetOptions): MaybePromise<ResetResult<unknown>> {
    this.wrapperState = 0;
    return super.reset(options);
  }

  override step(action: Action): MaybePromise<StepResult<unknown>> {
    this.wrapperState++;
    return super.step(action);
  }

  override observation(observation: unknown): unknown {
    const { flatten, normalizeTime, timeKey } = this.options;
    const steps = this.wrapperState;
    const time = normalizeTime ? Float32Array.of(steps / this.limit) : Int32Array.of(steps);
    const combined = combineWithTime(this.env.observationSpace, observation, time, timeKey);
    return flatten ? (this.observationSpace as FlatBox).array(this.combined.flatten(combined)) : combined;
  }
}

function findStepLimit(env: Env): number {
  const specLimit = env.spec?.maxEpisodeSteps;
  if (specLimit !== undefined) return specLimit;
  for (let inner: Env = env; inner instanceof Wrapper; inner = inner.env) {
    if (inner instanceof TimeLimit) return inner.maxEpisodeSteps;
  }
  throw invalidArgument("TimeAwareObservation needs an environment with a step limit. Put a TimeLimit around it.");
}

function createCombinedSpace(space: Space, time: Space, timeKey: string): Space {
  if (space instanceof Tuple) return new Tuple([...space.spaces, time]);
  if (!(space instanceof Dict)) return new Dict({ obs: space, time });
  if (!space.names.includes(timeKey)) return new Dict({ ...space.spaces, [timeKey]: time });
  throw invalidArgument(`The observation already has "${timeKey}". Give TimeAwareObservation another timeKey.`);
}

function combineWithTime(space: Space, observation: unknown, time: ArrayLike<number>, timeKey: string): unknown {
  if (space instanceof Tuple) return [...(observation as readonly unknown[]), time];
  if (space instanceof Dict) return { ...(observation as object), [timeKey]: time };
  return { obs: observation, time };
}
