import { invalidArgument } from "../../core/errors.js";
import type { JsonValue } from "../../core/json.js";
import type { MaybePromise } from "../../core/maybe-promise.js";
import type { RandomStream } from "../../core/random/random-stream.js";
import type { Info } from "../info.js";
import { createMinimax, type BehaviorPolicy } from "./exact.js";
import type { Game } from "./game.js";
import { RulesGame } from "./rules-game.js";

/** A turn of an opponent. */
export interface OpponentTurn<Observation = unknown> {
  readonly seat: number;
  readonly observation: Observation;
  readonly info: Info;
  /** Random stream of the environment, so that its seed determines the opponent too. */
  readonly random: RandomStream;
}

/**
 * Chooses an action for a seat; undefined is a reply that names none, which counts as an illegal
 * move.
 */
export type Opponent<Observation = unknown, Action = unknown> = (
  turn: OpponentTurn<Observation>,
) => MaybePromise<Action | undefined>;

/**
 * Plays a legal action, all equally likely; without a list of them, one of the action space.
 * @throws INVALID_ARGUMENT for a game that cannot be played at random
 */
export function createRandomOpponent<Observation, Action>(
  game: Game<Observation, Action>,
): Opponent<Observation, Action> {
  if (!game.canMoveAtRandom)
    throw invalidArgument(
      `${game.constructor.name} has no random player: it does not list legal actions. Train in self-play (--self-play --opponents self,past), or pass a function as opponent.`,
    );
  return ({ info, random }) => {
    const { legalActions } = info as { legalActions?: readonly Action[] };
    return legalActions === undefined ? game.actionSpace.sample() : random.choice(legalActions);
  };
}

/**
 * Plays a best action, equally good ones at random. @throws INVALID_ARGUMENT for a game that cannot
 * be enumerated
 */
export function createMinimaxOpponent<Position extends JsonValue>(game: RulesGame<Position>): Opponent<string, number> {
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
export function createPolicyOpponent(policy: BehaviorPolicy): Opponent<string, number> {
  return ({ seat, observation, info, random }) => {
    const legalActions = info.legalActions as readonly number[];
    return random.choice(legalActions, { probabilities: policy({ seat, observation, legalActions }) });
  };
}

/** Opponents that need no model. */
export const OPPONENT_NAMES = ["random", "minimax"] as const;
export type OpponentName = (typeof OPPONENT_NAMES)[number];

/**
 * Creates an opponent by its name. @throws INVALID_ARGUMENT for minimax in a game that cannot be
 * enumerated, and random in one that cannot be played so
 */
export function createNamedOpponent<Observation, Action>(
  game: Game<Observation, Action>,
  name: OpponentName,
): Opponent<Observation, Action> {
  if (name === "random") return createRandomOpponent(game);
  if (game instanceof RulesGame)
    return createMinimaxOpponent(game) as Opponent<unknown, unknown> as Opponent<Observation, Action>;
  throw invalidArgument(`${game.constructor.name} has no minimax player: its positions are not known.`);
}

/**
 * Creates the opponent of an environment's option: a name, or a function. @throws INVALID_ARGUMENT
 * for another value, and as `createNamedOpponent`
 */
export function createOpponent<Observation, Action>(
  game: Game<Observation, Action>,
  opponent: OpponentName | Opponent<string, unknown>,
): Opponent<Observation, Action> {
  if (typeof opponent === "function") return opponent as Opponent<unknown, unknown> as Opponent<Observation, Action>;
  if (opponent === "random" || opponent === "minimax") return createNamedOpponent(game, opponent);
  throw invalidArgument(
    `${game.constructor.name}: option opponent must be "random", "minimax" or a function, got ${JSON.stringify(opponent)}.`,
  );
}
