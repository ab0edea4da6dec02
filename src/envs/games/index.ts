export { Game, type GameResult, type GameText } from "./game.js";
export { asEnv, GameEnv, type AgentSeat, type GameOptions } from "./as-env.js";
export { ConnectFour } from "./connect-four.js";
export { computeElo, type MatchScore } from "./elo.js";
export {
  computeBestResponse,
  computeGameValue,
  computeNashConv,
  createMinimaxPolicy,
  informationKey,
  listInformation,
  uniformPolicy,
  type BehaviorPolicy,
  type BestResponse,
  type GameValue,
  type Information,
  type Outcomes,
} from "./exact.js";
export { KuhnPoker, type KuhnPokerOptions } from "./kuhn-poker.js";
export { Nim, type NimOptions } from "./nim.js";
export {
  createMinimaxOpponent,
  createNamedOpponent,
  createPolicyOpponent,
  createRandomOpponent,
  OPPONENT_NAMES,
  type Opponent,
  type OpponentName,
  type OpponentTurn,
} from "./opponents.js";
export { Pig, type PigOptions } from "./pig.js";
export { createGameText, RulesGame, type IllegalMoves, type RulesGameOptions } from "./rules-game.js";
export { SimpleNegotiation, type SimpleNegotiationOptions } from "./simple-negotiation.js";
export { SeatsEnv, type SeatsInfo } from "./seats-env.js";
export { TicTacToe } from "./tic-tac-toe.js";
