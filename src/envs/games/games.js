import { invalidArgument } from "../../core/errors.js";
import { asEnv } from "./as-env.js";
import { ConnectFour } from "./connect-four.js";
import { computeBestResponse, createMinimaxPolicy, uniformPolicy } from "./exact.js";
import { KuhnPoker } from "./kuhn-poker.js";
import { Nim } from "./nim.js";
import { createNamedOpponent } from "./opponents.js";
import { Pig } from "./pig.js";
import { TicTacToe } from "./tic-tac-toe.js";
/** Registers a game against an opponent. */
function createGameEnv(createGame) {
    return ({ opponent = "random", seat = "alternate", ...options }) => {
        const game = createGame(options);
        return asEnv(game, createOpponent(game, opponent), seat);
    };
}
function createOpponent(game, opponent) {
    if (typeof opponent === "function")
        return opponent;
    if (opponent === "random" || opponent === "minimax")
        return createNamedOpponent(game, opponent);
    throw invalidArgument(`${game.constructor.name}: option opponent must be "random", "minimax" or a function, got ${JSON.stringify(opponent)}.`);
}
/** Plays a best response to the opponent, computed exactly; to one that is a function, as to random play. */
function createBestResponder(env) {
    const game = env.unwrapped.game;
    const opponent = env.spec?.options.opponent === "minimax" ? createMinimaxPolicy(game) : uniformPolicy;
    const policies = new Map();
    return (observation, info) => {
        const { seat, legalActions } = info;
        const policy = policies.get(seat) ?? computeBestResponse(game, opponent, seat).policy;
        policies.set(seat, policy);
        return legalActions[policy({ seat, observation: observation, legalActions }).indexOf(1)];
    };
}
const HOLD_AT = 20;
/** Holds at 20 points, or as soon as the score and the turn's total win. */
const createPigExpert = (env) => {
    const game = env.unwrapped.game;
    return () => {
        const { scores, turnTotal, seat } = game.currentPosition;
        return turnTotal >= HOLD_AT || scores[seat] + turnTotal >= game.goal ? 1 : 0;
    };
};
export const gameEnvs = [
    {
        id: "TicTacToe-v0",
        entryPoint: createGameEnv((options) => new TicTacToe(options)),
        summary: "three in a row",
        knownReturns: { random: 0, best: 0.9598, basis: "exact" },
        expert: createBestResponder,
    },
    {
        id: "KuhnPoker-v0",
        entryPoint: createGameEnv((options) => new KuhnPoker(options)),
        summary: "poker with three cards",
        knownReturns: { random: 0, best: 0.4583, basis: "exact" },
        expert: createBestResponder,
    },
    {
        id: "Nim-v0",
        entryPoint: createGameEnv((options) => new Nim(options)),
        summary: "take the last object",
        knownReturns: { random: 0, best: 0.9999, basis: "exact" },
        expert: createBestResponder,
    },
    {
        id: "ConnectFour-v0",
        entryPoint: createGameEnv((options) => new ConnectFour(options)),
        summary: "four in a row",
        knownReturns: { random: 0, best: 1, basis: "page" },
    },
    {
        id: "Pig-v0",
        entryPoint: createGameEnv((options) => new Pig(options)),
        maxEpisodeSteps: 500,
        summary: "roll or hold",
        knownReturns: { random: 0, best: 1, basis: "measured" },
        expert: createPigExpert,
    },
];
