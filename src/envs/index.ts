import "#env-bridges";
export { SEED_CAUSE, findHiddenState, findHiddenStateLag, formatLag, type HiddenState } from "./check/hidden-state.js";
export { applyDefaults } from "./env-options.js";
export {
  Env,
  type EnvMetadata,
  type EnvOptions,
  type EnvState,
  type KnownReturns,
  MAX_STATE_DEPTH,
  type RenderFrame,
  type RenderMode,
  type ResetOptions,
  type ResetResult,
  type StepResult,
  saveEnvState,
} from "./env.js";
export { GameEnv, asEnv } from "./games/as-env.js";
export { computeElo, type MatchScore } from "./games/elo.js";
export {
  type BehaviorPolicy,
  type BestMoves,
  type Outcomes,
  computeBestMoves,
  computeGameValue,
  computeNashConv,
  createMinimaxPolicy,
  informationKey,
  listInformation,
  uniformPolicy,
} from "./games/exact.js";
export { Game, type GameText } from "./games/game.js";
export { type Opponent, createNamedOpponent, OPPONENT_NAMES } from "./games/opponents.js";
export { RulesGame } from "./games/rules-game.js";
export { SeatsEnv, type SeatsInfo } from "./games/seats-env.js";
export type { Info } from "./info.js";
export { randomAction } from "./random-action.js";
export { make, register, registry } from "./registry/make.js";
export { findSpec, openEnv, toMakeEnv, type EnvSource } from "./registry/open-env.js";
export { MAX_RETURN, MAX_REWARD, REWARD_RULE, isReward } from "./reward-limit.js";
export { computeBlackjackReturn } from "./solvers/blackjack-solver.js";
export { SchemaSpace, type ValueSchema } from "./spaces/index.js";
export { spaceToJson } from "./spaces/space-json.js";
export { formatValue } from "./spaces/space.js";
export { Text } from "./spaces/text.js";
export { type ToolCallLayout, toolCallSchema, toolCallStart, unionSchema } from "./spaces/tool-call-schema.js";
export { type TextInterface, describeLostValue, getChoices, isChoices } from "./text-interface.js";
export { findLastNamed } from "./text-parsing.js";
export { Wrapper } from "./wrapper.js";
export { FrameStackText } from "./wrappers/frame-stack-text.js";
export { TimeLimit } from "./wrappers/time.js";
