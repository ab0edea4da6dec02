import { Env, } from "./env.js";
import { andThen } from "../core/maybe-promise.js";
/**
 * An environment that delegates to another one; subclasses override what they change. Observation and
 * Action are the outer types, InnerObservation and InnerAction those of the wrapped environment.
 */
export class Wrapper extends Env {
    env;
    metadata;
    /** The wrapper's own state, which is saved; a wrapper whose state is not JSON overrides saveState and loadState. */
    wrapperState = null;
    constructor(env) {
        super();
        this.env = env;
        this.metadata = env.metadata;
        this.spec = env.spec;
    }
    get unwrapped() {
        return this.env.unwrapped;
    }
    get random() {
        return this.env.random;
    }
    get randomSeed() {
        return this.env.randomSeed;
    }
    render(mode) {
        return this.env.render(mode);
    }
    close() {
        return this.env.close();
    }
    getState() {
        const inner = this.env.getState();
        return { random: inner.random, state: { wrapper: this.saveState(), env: inner.state } };
    }
    setState(state) {
        const { wrapper, env } = state.state;
        this.env.setState({ random: state.random, state: env });
        this.loadState(wrapper);
    }
    saveState() {
        return structuredClone(this.wrapperState);
    }
    loadState(state) {
        this.wrapperState = structuredClone(state);
    }
    toString() {
        return `<${this.constructor.name}${this.env.toString()}>`;
    }
}
/** A wrapper with the spaces of its environment; subclasses record or change rewards and episode ends. */
export class PassThroughWrapper extends Wrapper {
    observationSpace;
    actionSpace;
    text;
    constructor(env) {
        super(env);
        this.observationSpace = env.observationSpace;
        this.actionSpace = env.actionSpace;
        this.text = env.text;
    }
    reset(options) {
        return this.env.reset(options);
    }
    step(action) {
        return this.env.step(action);
    }
}
/** A wrapper that transforms observations with `observation`, into the space passed to its constructor. */
export class ObservationWrapper extends Wrapper {
    observationSpace;
    actionSpace;
    constructor(env, observationSpace) {
        super(env);
        this.observationSpace = observationSpace;
        this.actionSpace = env.actionSpace;
    }
    reset(options) {
        return andThen(this.env.reset(options), (result) => ({
            ...result,
            observation: this.observation(result.observation),
        }));
    }
    step(action) {
        return andThen(this.env.step(action), (result) => ({
            ...result,
            observation: this.observation(result.observation),
        }));
    }
}
/** A wrapper that transforms actions with `action` before they reach the environment. */
export class ActionWrapper extends Wrapper {
    observationSpace;
    actionSpace;
    constructor(env, actionSpace) {
        super(env);
        this.observationSpace = env.observationSpace;
        this.actionSpace = actionSpace;
    }
    reset(options) {
        return this.env.reset(options);
    }
    step(action) {
        return this.env.step(this.action(action));
    }
}
/** A wrapper that transforms rewards with `reward`. */
export class RewardWrapper extends PassThroughWrapper {
    step(action) {
        return andThen(this.env.step(action), (result) => ({ ...result, reward: this.reward(result.reward) }));
    }
}
