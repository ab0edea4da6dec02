export { grpo } from "./grpo/grpo.js";
export { ppo } from "./ppo/ppo.js";
export { reinforce } from "./reinforce/reinforce.js";
export { rloo } from "./rloo/rloo.js";
export type { GrpoConfig, GrpoOptions } from "./grpo/settings.js";
export type { PpoConfig, PpoOptions } from "./ppo/settings.js";
export type { ReinforceConfig, ReinforceOptions } from "./reinforce/settings.js";
export type { RlooConfig, RlooOptions } from "./rloo/settings.js";
export type {
  AdvantageResult,
  AlgorithmDefinition,
  LossStatistics,
  MinibatchTotals,
  RolloutRequest,
  ScoredTrajectory,
  ScoredTurn,
  Stepping,
  TurnSample,
  UpdateConfig,
} from "./algorithm-definition.js";
export type { AlgorithmOptions } from "./algorithms.js";
export { defineAlgorithm, type Algorithm, type ConfiguredAlgorithm, type CustomAlgorithm } from "./define-algorithm.js";
export type {
  GroupSpec,
  Learner,
  LearnerContext,
  LearnerState,
  Metrics,
  RolloutSpec,
  UpdateOptions,
} from "./learner.js";
export type { LossNodes, TokenInput } from "./shared/loss-nodes.js";
