import { LlamaGymError, errorMessage, invalidArgument, invalidEnv } from "../core/errors.js";
import { describeUnsavable, MAX_JSON_DEPTH } from "../core/describe-unsavable.js";
import { createSeededStream } from "./seeded-stream.js";
import { formatValue } from "./spaces/space.js";
/**
 * A task for an agent, with Gymnasium's API.
 *
 * `reset` starts an episode and must come first; `step` takes an action until `terminated` or `truncated`. Both may be
 * asynchronous. All randomness comes from `this.random`, which `reset` seeds with `this.reseed(seed)`, so a seed
 * determines the whole episode. An environment that can be saved also implements `saveState` and `loadState`.
 */
export class Env {
    metadata = { renderModes: [] };
    /** Text interface for language models, where the environment has one. */
    text = undefined;
    /** The spec that `make` created it from. */
    spec;
    stream;
    streamSeed;
    /** Renders the current state; `mode` is one of `metadata.renderModes`. */
    render(mode) {
        throw invalidArgument(`${this.constructor.name} cannot render "${mode}": its metadata declares ${JSON.stringify(this.metadata.renderModes)}.`);
    }
    /** Releases resources such as files and processes. May be called twice. */
    close() { }
    /** The innermost environment. */
    get unwrapped() {
        return this;
    }
    /** Random stream of the environment; seeded from entropy until a seed is passed. */
    get random() {
        if (this.stream === undefined)
            this.startStream();
        return this.stream;
    }
    /** Last seed of the stream; undefined before its first use. */
    get randomSeed() {
        return this.streamSeed;
    }
    /** Seeds the random stream; without a seed the stream continues. Call it first in `reset`. */
    reseed(seed) {
        if (seed !== undefined)
            this.startStream(seed);
    }
    /** @throws ENV_ACTION_INVALID when the action is not in the action space. */
    checkAction(action) {
        if (this.actionSpace.contains(action))
            return;
        throw new LlamaGymError("ENV_ACTION_INVALID", `${formatValue(action)} (${typeof action}) invalid: ${this.constructor.name} takes an action of ${this.actionSpace.toString()}.`);
    }
    /** Returns the error for a step or render before the first reset. */
    notResetError() {
        return new LlamaGymError("ENV_NOT_RESET", `${this.constructor.name}: call reset() before step() and render().`);
    }
    startStream(seed) {
        const seeded = createSeededStream(seed);
        this.stream = seeded.stream;
        this.streamSeed = seeded.seed;
    }
    /** Returns the state as JSON; `setState` on an environment with the same options continues identically. */
    getState() {
        return { random: this.random.getState(), state: this.saveState() };
    }
    setState(state) {
        this.random.setState(state.random);
        this.loadState(state.state);
    }
    /** Returns the environment's fields as JSON, without the random stream. */
    saveState() {
        throw new LlamaGymError("INVALID_STATE", `${this.constructor.name} cannot be saved: it has no saveState() and loadState(). Add both to resume runs in it.`);
    }
    /** Restores the value of `saveState`. */
    loadState(_state) {
        throw new LlamaGymError("INVALID_STATE", `${this.constructor.name} cannot be restored: it has no loadState().`);
    }
    toString() {
        return this.spec === undefined ? `<${this.constructor.name}>` : `<${this.constructor.name}<${this.spec.id}>>`;
    }
}
/** Characters of a saved state: beyond it, checkpoints of several environments exceed the longest string of JavaScript. */
const MAX_STATE_LENGTH = 2 ** 25;
/** Levels of a saved state, which a checkpoint puts into some more. */
export const MAX_STATE_DEPTH = MAX_JSON_DEPTH - 10;
/**
 * Returns the state of an environment, checked to survive JSON.
 * @throws INVALID_STATE when it cannot be saved, ENV_INVALID when its state is not JSON or too large
 */
export function saveEnvState(env) {
    const state = env.getState();
    let length;
    try {
        length = JSON.stringify(state).length;
    }
    catch (error) {
        const [reason] = errorMessage(error).split("\n");
        const problem = `The state of ${env.unwrapped.toString()} is not JSON, so it cannot be saved: ${reason}`;
        throw invalidEnv(problem, error);
    }
    const unsavable = describeUnsavable(state, MAX_STATE_DEPTH);
    if (unsavable !== undefined)
        throw invalidEnv(`The state of ${env.unwrapped.toString()} cannot be saved: ${unsavable}.`);
    if (length <= MAX_STATE_LENGTH)
        return state;
    const problem = `has ${length} characters as JSON, at most ${MAX_STATE_LENGTH} are allowed`;
    throw invalidEnv(`The state of ${env.unwrapped.toString()} ${problem}. Save only what step() reads.`);
}
/** Closes an environment. @throws ENV_FAILED when its `close` throws. */
export async function closeEnv(env) {
    try {
        await env.close();
    }
    catch (error) {
        throw new LlamaGymError("ENV_FAILED", `${env.toString()} threw in close: ${errorMessage(error)}`, { cause: error });
    }
}
/** Returns the result of a factory. @throws ENV_INVALID when it is not an Env. */
export function requireEnv(value, factory) {
    if (value instanceof Env)
        return value;
    throw invalidEnv(`${factory} did not return an Env, but ${formatValue(value)}. Return \`new MyEnv(options)\`, where MyEnv extends Env.`);
}
