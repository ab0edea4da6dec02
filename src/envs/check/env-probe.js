import { LlamaGymError, errorMessage, invalidEnv } from "../../core/errors.js";
import { isReward, REWARD_RULE } from "../reward-limit.js";
import { cloneSpace, createZeroValue, formatValue } from "../spaces/index.js";
/** Checks the result of `reset`. @throws ENV_INVALID when it is not `{ observation, info }`. */
export function checkResetResult(result, env, warn) {
    checkFields(result, env, "reset");
    checkObservation(result.observation, env.observationSpace, "reset", warn);
}
/** Checks the result of `step`. @throws ENV_INVALID when it is not `{ observation, reward, terminated, truncated, info }`. */
export function checkStepResult(result, env, warn) {
    checkFields(result, env, "step");
    const { observation, reward, terminated, truncated, done } = result;
    if (done !== undefined && terminated === undefined) {
        warn("step() returns `done`, as in Gym's old API: return `terminated` for the end of the task and `truncated` for a limit.");
    }
    for (const [name, value] of Object.entries({ terminated, truncated })) {
        if (typeof value !== "boolean")
            warn(`Expects \`${name}\` to be a boolean, actual type: ${typeof value}`);
    }
    checkObservation(observation, env.observationSpace, "step", warn);
    checkReward(reward, warn);
}
const RESULTS = {
    reset: { names: ["observation"], expected: "{ observation, info }" },
    step: { names: ["observation", "reward"], expected: "{ observation, reward, terminated, truncated, info }" },
};
/** Checks that a result has its fields. @throws ENV_INVALID otherwise */
export function checkFields(result, env, method) {
    const { names, expected } = RESULTS[method];
    const call = `${env.toString()}: ${method}()`;
    const isRecord = typeof result === "object" && result !== null && !Array.isArray(result);
    if (!isRecord || names.some((name) => !(name in result))) {
        const actual = Array.isArray(result) ? `an array of ${result.length}` : formatValue(result);
        throw invalidEnv(`${call} returned ${actual}: return an object ${expected} instead.`);
    }
    const { info } = result;
    if (typeof info === "object" && info !== null && !Array.isArray(info))
        return;
    throw invalidEnv(`${call} returned the info ${formatValue(info)}: return an object, {} if there is no information.`);
}
function checkReward(reward, warn) {
    if (typeof reward !== "number")
        warn(`The reward given by step() must be a number, actual type: ${typeof reward}`);
    else if (Number.isNaN(reward))
        warn("The reward is a NaN value. A division by zero or an overflow is likely.");
    else if (!Number.isFinite(reward))
        warn("The reward is an infinite value.");
    else if (!isReward(reward))
        warn(`The reward is ${String(reward)}; training requires ${REWARD_RULE}.`);
}
function checkObservation(observation, space, method, warn) {
    const problem = describeObservationProblem(observation, space);
    if (problem !== undefined)
        warn(`The observation given by ${method}() ${problem}`);
}
/** Describes why an observation is not in its space; undefined when it is. */
function describeObservationProblem(observation, space) {
    if (observation === undefined)
        return "is undefined.";
    // A copy leaves the random stream of the space unchanged.
    const expected = createZeroValue(cloneSpace(space));
    const [expectedType, actualType] = [getTypeName(expected), getTypeName(observation)];
    if (ArrayBuffer.isView(expected) && expectedType !== actualType)
        return `should be a ${expectedType}, actual type: ${actualType}`;
    if (space.contains(observation))
        return undefined;
    return `is not within the observation space: ${formatValue(observation)} is not in ${space.toString()}.`;
}
function getTypeName(value) {
    return typeof value === "object" && value !== null ? value.constructor.name : typeof value;
}
/** Calls an environment under test, with a time limit, and validates the results. */
export class EnvProbe {
    env;
    warn;
    timeout;
    constructor(env, warn, timeout) {
        this.env = env;
        this.warn = warn;
        this.timeout = timeout;
    }
    async reset(options) {
        const call = `reset(${formatResetOptions(options)})`;
        const result = await this.run(call, () => this.env.reset(options));
        checkResetResult(result, this.env, this.warn);
        this.checkObservation(result.observation, call);
        return result;
    }
    async step(action) {
        const result = await this.run("step(action)", () => this.env.step(action));
        checkStepResult(result, this.env, this.warn);
        this.checkObservation(result.observation, "step(action)");
        return result;
    }
    async render(mode) {
        return await this.run(`render("${mode}")`, () => this.env.render(mode));
    }
    async close() {
        await this.run("close()", () => this.env.close());
    }
    checkObservation(observation, call) {
        const problem = describeObservationProblem(observation, this.env.observationSpace);
        if (problem !== undefined)
            throw invalidEnv(`The observation given by ${call} ${problem}`);
    }
    async run(call, method) {
        let timer;
        const limit = new Promise((_, reject) => {
            const expire = () => reject(invalidEnv(`${call} did not return within ${this.timeout} ms: most likely a promise is never resolved.`));
            timer = setTimeout(expire, this.timeout);
        });
        try {
            return await Promise.race([Promise.resolve().then(method), limit]);
        }
        catch (error) {
            if (error instanceof LlamaGymError && error.code === "ENV_INVALID")
                throw error;
            throw invalidEnv(`${call} threw an error: ${errorMessage(error)}`, error);
        }
        finally {
            clearTimeout(timer);
        }
    }
}
function formatResetOptions({ seed, options }) {
    const parts = [seed === undefined ? "" : `seed: ${seed}`, options === undefined ? "" : "options: {}"].filter(Boolean);
    return parts.length === 0 ? "" : `{ ${parts.join(", ")} }`;
}
