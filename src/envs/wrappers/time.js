import { invalidArgument, LlamaGymError } from "../../core/errors.js";
import { andThen } from "../../core/maybe-promise.js";
import { Box, Dict, Tuple, flattenSpace } from "../spaces/index.js";
import { ObservationWrapper, PassThroughWrapper, Wrapper } from "../wrapper.js";
/** Truncates an episode at its `maxEpisodeSteps`-th step. */
export class TimeLimit extends PassThroughWrapper {
    maxEpisodeSteps;
    /** Steps of the episode. */
    wrapperState = 0;
    constructor(env, { maxEpisodeSteps }) {
        super(env);
        if (!(Number.isInteger(maxEpisodeSteps) && maxEpisodeSteps > 0))
            throw invalidArgument(`maxEpisodeSteps must be an integer above 0, actual value: ${maxEpisodeSteps}`);
        this.maxEpisodeSteps = maxEpisodeSteps;
    }
    reset(options) {
        this.wrapperState = 0;
        return this.env.reset(options);
    }
    step(action) {
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
/** Rejects steps before the first reset or after an episode's end, and rendering before the first reset. */
export class OrderEnforcing extends PassThroughWrapper {
    wrapperState = { hasReset: false, hasEnded: false };
    reset(options) {
        this.wrapperState = { hasReset: true, hasEnded: false };
        return this.env.reset(options);
    }
    step(action) {
        this.requireReset("step");
        if (this.wrapperState.hasEnded)
            throw new LlamaGymError("ENV_NOT_RESET", "The episode has ended. Call env.reset() before the next env.step()");
        return andThen(this.env.step(action), (result) => {
            this.wrapperState.hasEnded = result.terminated || result.truncated;
            return result;
        });
    }
    render(mode) {
        this.requireReset("render");
        return this.env.render(mode);
    }
    requireReset(method) {
        if (this.wrapperState.hasReset)
            return;
        throw new LlamaGymError("ENV_NOT_RESET", `Cannot call env.${method}() before calling env.reset()`);
    }
}
/** Resets in the step after an episode's end, which ignores its action and has reward 0. */
export class Autoreset extends PassThroughWrapper {
    /** Whether the episode has ended. */
    wrapperState = false;
    reset(options) {
        this.wrapperState = false;
        return this.env.reset(options);
    }
    step(action) {
        if (this.wrapperState)
            return andThen(this.reset(), (result) => ({ ...result, reward: 0, terminated: false, truncated: false }));
        return andThen(this.env.step(action), (result) => {
            this.wrapperState = result.terminated || result.truncated;
            return result;
        });
    }
}
/** Adds the number of steps so far to the observation. The environment must have a step limit. */
export class TimeAwareObservation extends ObservationWrapper {
    combined;
    options;
    limit;
    /** Steps of the episode. */
    wrapperState = 0;
    constructor(env, options = {}) {
        const { flatten = true, normalizeTime = false, timeKey = "time" } = options;
        const limit = findStepLimit(env);
        const timeSpace = normalizeTime ? new Box(0, 1) : new Box(0, limit, { dtype: "int32" });
        const combined = createCombinedSpace(env.observationSpace, timeSpace, timeKey);
        super(env, flatten ? flattenSpace(combined) : combined);
        this.combined = combined;
        this.options = { flatten, normalizeTime, timeKey };
        this.limit = limit;
    }
    reset(options) {
        this.wrapperState = 0;
        return super.reset(options);
    }
    step(action) {
        this.wrapperState++;
        return super.step(action);
    }
    observation(observation) {
        const { flatten, normalizeTime, timeKey } = this.options;
        const steps = this.wrapperState;
        const time = normalizeTime ? Float32Array.of(steps / this.limit) : Int32Array.of(steps);
        const combined = combineWithTime(this.env.observationSpace, observation, time, timeKey);
        return flatten ? this.observationSpace.array(this.combined.flatten(combined)) : combined;
    }
}
function findStepLimit(env) {
    const specLimit = env.spec?.maxEpisodeSteps;
    if (specLimit !== undefined)
        return specLimit;
    for (let inner = env; inner instanceof Wrapper; inner = inner.env) {
        if (inner instanceof TimeLimit)
            return inner.maxEpisodeSteps;
    }
    throw invalidArgument("TimeAwareObservation needs an environment with a step limit. Put a TimeLimit around it.");
}
function createCombinedSpace(space, time, timeKey) {
    if (space instanceof Tuple)
        return new Tuple([...space.spaces, time]);
    if (!(space instanceof Dict))
        return new Dict({ obs: space, time });
    if (!space.names.includes(timeKey))
        return new Dict({ ...space.spaces, [timeKey]: time });
    throw invalidArgument(`The observation already has "${timeKey}". Give TimeAwareObservation another timeKey.`);
}
function combineWithTime(space, observation, time, timeKey) {
    if (space instanceof Tuple)
        return [...observation, time];
    if (space instanceof Dict)
        return { ...observation, [timeKey]: time };
    return { obs: observation, time };
}
