import { createChoiceText } from "../text-parsing.js";
import { CLIFF_COLUMNS, CLIFF_GOAL, CLIFF_ROWS, isCliff, CLIFF_START } from "./cliff-grid.js";
import { applyDefaults } from "../env-options.js";
import { drawCliffWalking } from "./drawings.js";
import { moveWithin, tabulate, TabularEnv } from "./tabular-env.js";
import { createTabularExpert } from "../solvers/tabular-solver.js";
const CHOICES = ["up", "right", "down", "left"];
const NEIGHBORS = [
    ["Up", -1, 0],
    ["right", 0, 1],
    ["down", 1, 0],
    ["left", 0, -1],
];
function describeTile(row, column) {
    if (row < 0 || row >= CLIFF_ROWS || column < 0 || column >= CLIFF_COLUMNS)
        return "edge";
    const state = row * CLIFF_COLUMNS + column;
    if (isCliff(state))
        return "cliff";
    return state === CLIFF_GOAL ? "goal" : "ground";
}
/** Describes the position and the adjacent tiles; rows and columns count from 0. */
function createCliffWalkingText(isSlippery) {
    const slipperyNote = isSlippery ? " The ground is slippery: a move may go to either side instead." : "";
    return createChoiceText({
        systemPrompt: `Walk to the goal at row ${CLIFF_ROWS - 1}, column ${CLIFF_COLUMNS - 1} in few steps. Stepping into the cliff costs 100 and sends you back to the start.${slipperyNote} Answer up, right, down or left.`,
        formatObservation: (state) => {
            const [row, column] = [Math.floor(state / CLIFF_COLUMNS), state % CLIFF_COLUMNS];
            const neighbors = NEIGHBORS.map(([name, down, right]) => `${name} ${describeTile(row + down, column + right)}`);
            return `You are at row ${row}, column ${column}. ${neighbors.join(", ")}.`;
        },
        names: CHOICES,
    });
}
const NUM_STATES = CLIFF_ROWS * CLIFF_COLUMNS;
/** Up, right, down, left: the actions in their order. */
const MOVES = [
    [-1, 0],
    [0, 1],
    [1, 0],
    [0, -1],
];
/**
 * Walk from one end of a cliff to the other without falling (Sutton and Barto, example 6.6). Observation: the tile, row
 * by row. Actions: up, right, down, left. Equals Gymnasium's CliffWalking-v1.
 */
export class CliffWalkingEnv extends TabularEnv {
    text;
    constructor(options = {}) {
        const { isSlippery } = applyDefaults("CliffWalking", options, { isSlippery: false });
        super(buildTransitions(isSlippery), tabulate(NUM_STATES, (state) => (state === CLIFF_START ? 1 : 0)));
        this.text = createCliffWalkingText(isSlippery);
    }
    draw(mode, state) {
        return drawCliffWalking(mode, state);
    }
}
function buildTransitions(isSlippery) {
    const createOutcome = (state, action, probability) => {
        const [row, column] = moveWithin(Math.floor(state / CLIFF_COLUMNS), state % CLIFF_COLUMNS, MOVES[action], CLIFF_ROWS, CLIFF_COLUMNS);
        const next = row * CLIFF_COLUMNS + column;
        if (isCliff(next))
            return { probability, state: CLIFF_START, reward: -100, terminated: false };
        return { probability, state: next, reward: -1, terminated: next === CLIFF_GOAL };
    };
    return tabulate(NUM_STATES, (state) => tabulate(MOVES.length, (action) => {
        if (!isSlippery)
            return [createOutcome(state, action, 1)];
        return [(action + 3) % 4, action, (action + 1) % 4].map((takenAction) => createOutcome(state, takenAction, 1 / 3));
    }));
}
const createCliffWalking = (options) => new CliffWalkingEnv(options);
export const cliffWalkingEnvs = [
    {
        id: "CliffWalking-v1",
        entryPoint: createCliffWalking,
        summary: "walk along a cliff",
        knownReturns: { random: -65375.13, best: -13, basis: "exact" },
        expert: createTabularExpert,
    },
    {
        id: "CliffWalkingSlippery-v1",
        entryPoint: createCliffWalking,
        options: { isSlippery: true },
        summary: "walk along a slippery cliff",
        knownReturns: { random: -65375.13, best: -64.71, basis: "exact" },
        expert: createTabularExpert,
    },
];
