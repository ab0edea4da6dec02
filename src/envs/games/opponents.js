import { invalidArgument } from "../../core/errors.js";
import { createMinimax } from "./exact.js";
import { RulesGame } from "./rules-game.js";
/** Plays a legal action, all equally likely; without a list of them, one of the action space. */
export function createRandomOpponent(game) {
    return ({ info, random }) => {
        const { legalActions } = info;
        return legalActions === undefined ? game.actionSpace.sample() : random.choice(legalActions);
    };
}
/** Plays a best action, equally good ones at random. @throws INVALID_ARGUMENT for a game that cannot be enumerated */
export function createMinimaxOpponent(game) {
    const evaluate = createMinimax(game);
    return ({ seat, random }) => {
        const position = game.currentPosition;
        const actions = game.listActions(position);
        const values = actions.map((action) => evaluate(game.next(position, action)) * (seat === 0 ? 1 : -1));
        const best = Math.max(...values);
        return random.choice(actions.filter((_, i) => values[i] === best));
    };
}
/** Draws from the probabilities of a policy. */
export function createPolicyOpponent(policy) {
    return ({ seat, observation, info, random }) => {
        const legalActions = info.legalActions;
        return random.choice(legalActions, { probabilities: policy({ seat, observation, legalActions }) });
    };
}
/** Opponents that need no model. */
export const OPPONENT_NAMES = ["random", "minimax"];
/** Creates an opponent by its name. @throws INVALID_ARGUMENT for minimax in a game that cannot be enumerated */
export function createNamedOpponent(game, name) {
    if (name === "random")
        return createRandomOpponent(game);
    if (game instanceof RulesGame)
        return createMinimaxOpponent(game);
    throw invalidArgument(`${game.constructor.name} has no minimax player: its positions are not known.`);
}
