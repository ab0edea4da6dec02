import type { JsonValue } from "../../core/json.js";
import type { Env } from "../env.js";
import type { Policy } from "../policy.js";
import type { Registration } from "../registry/env-registry.js";
import { ConnectFour } from "./connect-four.js";
import { createGameEnv, type GameEnv } from "./as-env.js";
import { computeBestResponse, createMinimaxPolicy, uniformPolicy, type BehaviorPolicy } from "./exact.js";
import { KuhnPoker } from "./kuhn-poker.js";
import { Nim } from "./nim.js";
import { Pig } from "./pig.js";
import type { RulesGame } from "./rules-game.js";
import { SimpleNegotiation } from "./simple-negotiation.js";
import { TicTacToe } from "./tic-tac-toe.js";

/**
 * Plays a best response to the opponent, computed exactly; to one that is a function, as to random
 * play.
 */
function createBestResponder(env: Env): Policy {
  const game = (env.unwrapped as GameEnv).game as RulesGame<JsonValue>;
  const opponent = env.spec?.options.opponent === "minimax" ? createMinimaxPolicy(game) : uniformPolicy;
  const policies = new Map<number, BehaviorPolicy>();
  return (observation, info) => {
    const { seat, legalActions } = info as { seat: number; legalActions: readonly number[] };
    const policy = policies.get(seat) ?? computeBestResponse(game, opponent, seat).policy;
    policies.set(seat, policy);
    return legalActions[policy({ seat, observation: observation as string, legalActions }).indexOf(1)];
  };
}

const HOLD_AT = 20;

/** Holds at 20 points, or as soon as the score and the turn's total win. */
const createPigExpert = (env: Env): Policy => {
  const game = (env.unwrapped as GameEnv).game as Pig;
  return () => {
    const { scores, turnTotal, seat } = game.currentPosition;
    return turnTotal >= HOLD_AT || scores[seat] + turnTotal >= game.goal ? 1 : 0;
  };
};

/**
 * Accepts what gains by the player's values, and otherwise asks two of the best for one of the
 * cheapest.
 */
const createTrader = (env: Env): Policy => {
  const game = (env.unwrapped as GameEnv).game as SimpleNegotiation;
  return (_observation, info) => {
    const { seat, legalActions } = info as { seat: number; legalActions: readonly string[] };
    const ranked = [...legalActions].sort((a, b) => game.valueAction(b, seat) - game.valueAction(a, seat));
    return legalActions.includes("accept") && game.valueAction("accept", seat) > 0
      ? "accept"
      : ranked.find((action) => action.startsWith("offer"))!;
  };
};

export const gameEnvs: readonly Registration[] = [
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
  {
    id: "SimpleNegotiation-v0",
    entryPoint: createGameEnv((options) => new SimpleNegotiation(options)),
    summary: "trade five resources",
    knownReturns: { random: 0, best: 0.957, basis: "measured" },
    expert: createTrader,
  },
];
