import { invalidArgument } from "../../../core/errors.js";
import type { Env, ResetOptions, ResetResult, StepResult } from "../../env.js";
import type { JsonValue } from "../../../core/json.js";
import type { MaybePromise } from "../../../core/maybe-promise.js";
import { Box } from "../../spaces/box.js";
import { Dict } from "../../spaces/composite.js";
import { flattenSpace } from "../../spaces/flatten-space.js";
import type { Space } from "../../spaces/space.js";
import { Tuple } from "../../spaces/composite.js";
import { ObservationWrapper, Wrapper } from "../../wrapper.js";
import { TimeLimit } from "../time-limit.js";

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
  private steps = 0;

  constructor(env: Env<unknown, Action>, options: TimeAwareOptions = {}) {
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
    this.steps = 0;
    return super.reset(options);
  }

  override step(action: Action): MaybePromise<StepResult<unknown>> {
    this.steps++;
    return super.step(action);
  }

  override observation(observation: unknown): unknown {
    const { flatten, normalizeTime, timeKey } = this.options;
    const time = normalizeTime ? Float32Array.of(this.steps / this.limit) : Int32Array.of(this.steps);
    const combined = combineWithTime(this.env.observationSpace, observation, time, timeKey);
    return flatten ? (this.observationSpace as Box<"float64">).array(this.combined.flatten(combined)) : combined;
  }

  protected override saveState(): JsonValue {
    return this.steps;
  }

  protected override loadState(state: JsonValue): void {
    this.steps = Number(state);
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
  const parts = space.spaces;
  if (Object.hasOwn(parts, timeKey)) {
    throw invalidArgument(`The observation already has "${timeKey}". Give TimeAwareObservation another timeKey.`);
  }
  return new Dict({ ...parts, [timeKey]: time });
}

function combineWithTime(space: Space, observation: unknown, time: ArrayLike<number>, timeKey: string): unknown {
  if (space instanceof Tuple) return [...(observation as readonly unknown[]), time];
  if (space instanceof Dict) return { ...(observation as object), [timeKey]: time };
  return { obs: observation, time };
}
