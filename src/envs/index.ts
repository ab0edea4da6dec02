import "./bridges/register-openers.js";
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
} from "./spaces/index.js";
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
} from "./env.js";
export type { Info } from "./info.js";
export type { JsonValue } from "../core/json.js";
export { andThen, type MaybePromise } from "../core/maybe-promise.js";
export { make, register, registry, type MakeOptions } from "./registry/make.js";
export { findSpec, openEnv, registerOpener, type EnvOpener } from "./registry/open-env.js";
export { EnvRegistry, type Registration } from "./registry/env-registry.js";
export { getChoices, type Choices, type TextInterface } from "./text-interface.js";
export { PassThroughWrapper, Wrapper } from "./wrapper.js";
export { OrderEnforcing, TimeLimit, Autoreset, TimeAwareObservation, type TimeAwareOptions } from "./wrappers/time.js";
export { PassiveEnvChecker } from "./wrappers/passive-env-checker.js";
export { AcrobotEnv } from "./classic-control/acrobot.js";
export { CartPoleEnv, type CartPoleOptions } from "./classic-control/cart-pole.js";
export { ContinuousMountainCarEnv } from "./classic-control/continuous-mountain-car.js";
export { MountainCarEnv, type MountainCarOptions } from "./classic-control/mountain-car.js";
export { PendulumEnv, type PendulumOptions } from "./classic-control/pendulum.js";
export { encodePng } from "./rendering/png.js";
export { BlackjackEnv, type BlackjackOptions } from "./toy-text/blackjack.js";
export type { BlackjackObservation } from "./toy-text/blackjack-text.js";
export { CliffWalkingEnv, type CliffWalkingOptions } from "./toy-text/cliff-walking.js";
export { FrozenLakeEnv, type FrozenLakeOptions } from "./toy-text/frozen-lake.js";
export { FROZEN_LAKE_MAPS, generateRandomMap } from "./toy-text/frozen-lake-map.js";
export { TabularEnv, type Transition, type TransitionTable } from "./toy-text/tabular-env.js";
export { TaxiEnv, type TaxiOptions } from "./toy-text/taxi.js";
export { createSchemaText, findLastNamedAction, parseLastNumber, formatSigned } from "./text-parsing.js";
export { checkEnv, type CheckEnvOptions } from "./check/check-env.js";
export type { Policy } from "./policy.js";
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
} from "./vector/vector-env.js";
export { makeVector, type MakeVectorOptions } from "./vector/make-vector.js";
export { SyncVectorEnv } from "./vector/sync-vector-env.js";
export { WorkerVectorEnv, type WorkerVectorOptions } from "./vector/worker-vector-env.js";
export type { EnvSource } from "./vector/worker-protocol.js";
export { ActionWrapper, ObservationWrapper, RewardWrapper } from "./wrapper.js";
export {
  ClipAction,
  RescaleAction,
  DiscretizeAction,
  RepeatAction,
  StickyAction,
  type StickyActionOptions,
  TransformAction,
  type TransformActionOptions,
} from "./wrappers/action.js";
export {
  DelayObservation,
  FlattenObservation,
  FrameStackObservation,
  type FrameStackOptions,
  RescaleObservation,
  TransformObservation,
  type TransformObservationOptions,
} from "./wrappers/observation.js";
export { FrameStackText } from "./wrappers/frame-stack-text.js";
export { NormalizeObservation } from "./wrappers/normalize-observation.js";
export {
  NormalizeReward,
  type NormalizeRewardOptions,
  ClipReward,
  TransformReward,
  type ClipRewardOptions,
} from "./wrappers/reward.js";
export {
  RecordEpisode,
  type EpisodeRecording,
  type RecordEpisodeOptions,
  RecordEpisodeStatistics,
  type EpisodeStatistics,
  type RecordEpisodeStatisticsOptions,
} from "./wrappers/record-episode.js";
export * from "./tasks/index.js";
export * from "./games/index.js";
export { BabyAiEnv, type BabyAiOptions } from "./baby-ai/baby-ai.js";
export type { BabyAiObservation } from "./baby-ai/view.js";
export {
  createReasoningDataset,
  reasoningReward,
  type ReasoningDatasetOptions,
  type ReasoningRow,
} from "./reasoning/dataset.js";
export { ReasoningEnv, type ReasoningOptions } from "./reasoning/reasoning.js";
export { CurriculumWrapper, type CurriculumOptions, type LeveledEnv } from "./reasoning/curriculum.js";
