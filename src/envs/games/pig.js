import { readCounts } from "../env-options.js";
import { Discrete } from "../spaces/index.js";
import { createGameText, RulesGame } from "./rules-game.js";
const ROLL = 0;
/** Pig: roll a die and add up, a 1 loses the turn's total, hold keeps it. Actions: roll, hold. Win 1, loss -1. */
export class Pig extends RulesGame {
    actionSpace = new Discrete(2);
    isPerfectInformation = true;
    text;
    goal;
    maxActions;
    constructor({ goal, maxActions, ...options } = {}) {
        super(options);
        const counts = readCounts("Pig", { goal, maxActions }, { goal: [100, 2, 10_000], maxActions: [0, 0, 1_000_000] });
        this.goal = counts.goal;
        this.maxActions = counts.maxActions;
        this.text = createGameText(`Pig: reach ${this.goal} points first. Roll adds the die to your turn's total, but a 1 loses it and ends the turn. Hold adds the total to your score and ends the turn. Answer roll or hold.`, ["roll", "hold"]);
    }
    start() {
        return { scores: [0, 0], turnTotal: 0, seat: 0, actions: 0 };
    }
    getSeat({ scores, seat, actions, turnTotal }) {
        const isOver = Math.max(...scores) >= this.goal || (this.isAtLimit(actions) && turnTotal === 0);
        return isOver ? undefined : seat;
    }
    listActions() {
        return [0, 1];
    }
    next({ scores, turnTotal, seat, actions }, action) {
        const pass = { turnTotal: 0, seat: 1 - seat, actions: actions + 1 };
        if (action !== ROLL)
            return { scores: scores.with(seat, scores[seat] + turnTotal), ...pass };
        const die = this.random.randInt(1, 6);
        if (die === 1)
            return { scores, ...pass };
        return { scores, turnTotal: turnTotal + die, seat, actions: actions + 1 };
    }
    getReturns(position) {
        const [a, b] = position.scores;
        if (this.getSeat(position) !== undefined || a === b)
            return [0, 0];
        return a > b ? [1, -1] : [-1, 1];
    }
    observe({ scores, turnTotal }, seat) {
        return `Your score ${scores[seat]}, opponent ${scores[1 - seat]}. This turn ${turnTotal}.`;
    }
    /** Whether the limit is reached; a turn in which points were rolled continues all the same. */
    isAtLimit(actions) {
        return this.maxActions > 0 && actions >= this.maxActions;
    }
}
