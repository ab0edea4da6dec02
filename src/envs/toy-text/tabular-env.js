import { invalidArgument } from "../../core/errors.js";
import { Env, } from "../env.js";
import { Discrete } from "../spaces/discrete.js";
/** Returns the position after a move, clipped to the grid. */
export function moveWithin(row, column, [down, right], rows, columns) {
    return [Math.min(Math.max(row + down, 0), rows - 1), Math.min(Math.max(column + right, 0), columns - 1)];
}
/** Creates `count` values from their index. */
export function tabulate(count, make) {
    return Array.from({ length: count }, (_, index) => make(index));
}
/** A Markov decision process given as a table; states and actions are numbered from 0. */
export class TabularEnv extends Env {
    observationSpace;
    actionSpace;
    metadata = { renderModes: ["ansi", "rgb_array"], renderFps: 4 };
    /** The outcomes of every action in every state. */
    transitions;
    /** Probability that an episode starts in each state. */
    initialDistribution;
    state;
    lastAction;
    initialSums;
    constructor(transitions, initialDistribution) {
        super();
        this.transitions = transitions;
        this.initialDistribution = initialDistribution;
        this.observationSpace = new Discrete(transitions.length);
        this.actionSpace = new Discrete(transitions[0].length);
        let sum = 0;
        this.initialSums = initialDistribution.map((probability) => (sum += probability));
    }
    reset({ seed } = {}) {
        this.reseed(seed);
        const draw = this.random.random();
        const state = Math.max(0, this.initialSums.findIndex((sum) => sum > draw));
        this.state = state;
        this.lastAction = undefined;
        return { observation: state, info: this.info(1, state) };
    }
    step(action) {
        this.checkAction(action);
        if (this.state === undefined)
            throw this.notResetError();
        const outcome = this.drawOutcome(this.transitions[this.state][action]);
        const state = this.nextState(this.state, outcome.state);
        this.state = state;
        this.lastAction = action;
        const { reward, terminated } = outcome;
        return { observation: state, reward, terminated, truncated: false, info: this.info(outcome.probability, state) };
    }
    /** Draws a state; subclasses that render override it. */
    draw(mode, _state) {
        throw invalidArgument(`${this.constructor.name} cannot render "${mode}": it has no draw().`);
    }
    render(mode) {
        if (this.state === undefined)
            throw this.notResetError();
        return this.draw(mode, this.state);
    }
    /** Adjusts the new state beyond the table. */
    nextState(_from, to) {
        return to;
    }
    info(probability, _state) {
        return { prob: probability };
    }
    /** Returns the first outcome whose cumulative probability exceeds a draw; the first one when rounding leaves none. */
    drawOutcome(outcomes) {
        const draw = this.random.random();
        let sum = 0;
        for (const outcome of outcomes) {
            sum += outcome.probability;
            if (sum > draw)
                return outcome;
        }
        return outcomes[0];
    }
    saveState() {
        return { state: this.state ?? null, lastAction: this.lastAction ?? null };
    }
    loadState(json) {
        const { state, lastAction } = json;
        this.state = state ?? undefined;
        this.lastAction = lastAction ?? undefined;
    }
}
