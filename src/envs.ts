import "#env-bridges";
export {
  batchSpace,
  Box,
  createZeroValue,
  Dict,
  Discrete,
  flattenSpace,
  Graph,
  MultiBinary,
  MultiDiscrete,
  OneOf,
  SchemaSpace,
  Sequence,
  Space,
  spaceFromJson,
  spaceToJson,
  Text,
  Tuple,
  unbatch,
  type BoxArray,
  type BoxDtype,
  type BoxOptions,
  type GraphInstance,
  type SampleMask,
  type SampleOptions,
  type SpaceDescription,
  type SpaceSeed,
  type ValueSchema,
} from "./envs/spaces/index.js";
export {
  Env,
  type EnvFactory,
  type EnvMetadata,
  type EnvOptions,
  type EnvSpec,
  type EnvState,
  type KnownReturns,
  type RenderFrame,
  type RenderMode,
  type ResetOptions,
  type ResetResult,
  type RgbImage,
  type StepResult,
} from "./envs/env.js";
export type { Info } from "./envs/info.js";
export type { JsonValue } from "./core/json.js";
export { andThen, type MaybePromise } from "./core/maybe-promise.js";
export { make, register, registry, type MakeOptions } from "./envs/registry/make.js";
export { findSpec, openEnv, registerOpener, type EnvOpener } from "./envs/registry/open-env.js";
export { EnvRegistry, type Registration } from "./envs/registry/env-registry.js";
export { getChoices, type Choices, type TextInterface } from "./envs/text-interface.js";
export { Wrapper } from "./envs/wrapper.js";
export {
  OrderEnforcing,
  TimeLimit,
  Autoreset,
  TimeAwareObservation,
  type TimeAwareOptions,
} from "./envs/wrappers/time.js";
export { PassiveEnvChecker } from "./envs/wrappers/passive-env-checker.js";
export { AcrobotEnv } from "./envs/classic-control/acrobot.js";
export { CartPoleEnv, type CartPoleOptions } from "./envs/classic-control/cart-pole.js";
export { ContinuousMountainCarEnv } from "./envs/classic-control/continuous-mountain-car.js";
export { MountainCarEnv, type MountainCarOptions } from "./envs/classic-control/mountain-car.js";
export { PendulumEnv, type PendulumOptions } from "./envs/classic-control/pendulum.js";
export { encodePng } from "./envs/rendering/png.js";
export { BlackjackEnv, type BlackjackOptions } from "./envs/toy-text/blackjack.js";
export type { BlackjackObservation } from "./envs/toy-text/blackjack-text.js";
export { CliffWalkingEnv, type CliffWalkingOptions } from "./envs/toy-text/cliff-walking.js";
export { FrozenLakeEnv, type FrozenLakeOptions } from "./envs/toy-text/frozen-lake.js";
export { FROZEN_LAKE_MAPS, generateRandomMap } from "./envs/toy-text/frozen-lake-map.js";
export { TabularEnv, type Transition, type TransitionTable } from "./envs/toy-text/tabular-env.js";
export { TaxiEnv, type TaxiOptions } from "./envs/toy-text/taxi.js";
export { createSchemaText, findLastNamedAction, parseLastNumber, formatSigned } from "./envs/text-parsing.js";
export { checkEnv, type CheckEnvOptions } from "./envs/check/check-env.js";
export type { Policy } from "./envs/policy.js";
export {
  batchInfo,
  type AutoresetMode,
  type FailurePolicy,
  type VectorEnv,
  type VectorOptions,
  type VectorResetOptions,
  type VectorResetResult,
  type VectorState,
  type VectorStepResult,
} from "./envs/vector/vector-env.js";
export { makeVector, type MakeVectorOptions } from "./envs/vector/make-vector.js";
export { SyncVectorEnv } from "./envs/vector/sync-vector-env.js";
export { WorkerVectorEnv, type WorkerVectorOptions } from "./envs/vector/worker-vector-env.js";
export type { EnvReference } from "./envs/vector/worker-protocol.js";
export { ActionWrapper, ObservationWrapper, RewardWrapper } from "./envs/wrapper.js";
export {
  ClipAction,
  RescaleAction,
  DiscretizeAction,
  RepeatAction,
  StickyAction,
  type StickyActionOptions,
  TransformAction,
  type TransformActionOptions,
} from "./envs/wrappers/action.js";
export {
  DelayObservation,
  FlattenObservation,
  FrameStackObservation,
  type FrameStackOptions,
  RescaleObservation,
  TransformObservation,
  type TransformObservationOptions,
} from "./envs/wrappers/observation.js";
export { FrameStackText } from "./envs/wrappers/frame-stack-text.js";
export { NormalizeObservation } from "./envs/wrappers/normalize-observation.js";
export {
  NormalizeReward,
  type NormalizeRewardOptions,
  ClipReward,
  TransformReward,
  type ClipRewardOptions,
} from "./envs/wrappers/reward.js";
export {
  RecordEpisode,
  type EpisodeRecording,
  type RecordEpisodeOptions,
  RecordEpisodeStatistics,
  type EpisodeStatistics,
  type RecordEpisodeStatisticsOptions,
} from "./envs/wrappers/record-episode.js";
export {
  BanditEnv,
  type BanditOptions,
  BullsAndCowsEnv,
  type BullsAndCowsOptions,
  CalculatorEnv,
  type CalculatorOptions,
  GuessNumberEnv,
  type GuessNumberOptions,
  ShopSupportEnv,
  SokobanEnv,
  type SokobanOptions,
  TaskEnv,
  type TaskStep,
  TwentyFortyEightEnv,
  type Order,
  type OrderStatus,
  type ShopCall,
  type ShopSupportOptions,
  type ShopTool,
  WebShopEnv,
  type WebShopOptions,
  WordleEnv,
  type WordleOptions,
} from "./envs/tasks/index.js";
export {
  type AgentSeat,
  asEnv,
  type BehaviorPolicy,
  type BestResponse,
  computeBestResponse,
  computeElo,
  computeGameValue,
  computeNashConv,
  ConnectFour,
  createGameText,
  createMinimaxOpponent,
  createMinimaxPolicy,
  createNamedOpponent,
  createPolicyOpponent,
  createRandomOpponent,
  Game,
  GameEnv,
  type GameOptions,
  type GameResult,
  type GameText,
  type GameValue,
  type IllegalMoves,
  type Information,
  informationKey,
  KuhnPoker,
  type KuhnPokerOptions,
  listInformation,
  type MatchScore,
  Nim,
  type NimOptions,
  type Opponent,
  OPPONENT_NAMES,
  type OpponentName,
  type OpponentTurn,
  type Outcomes,
  Pig,
  type PigOptions,
  RulesGame,
  type RulesGameOptions,
  SeatsEnv,
  type SeatsInfo,
  SimpleNegotiation,
  type SimpleNegotiationOptions,
  TicTacToe,
  uniformPolicy,
} from "./envs/games/index.js";
export { BabyAiEnv, type BabyAiOptions } from "./envs/baby-ai/baby-ai.js";
export type { BabyAiObservation } from "./envs/baby-ai/view.js";
export {
  createReasoningDataset,
  reasoningReward,
  type ReasoningDatasetOptions,
  type ReasoningRow,
} from "./envs/reasoning/dataset.js";
export { ReasoningEnv, type ReasoningOptions } from "./envs/reasoning/reasoning.js";
export { CurriculumWrapper, type CurriculumOptions, type LeveledEnv } from "./envs/reasoning/curriculum.js";
