export { grpo } from "./grpo/grpo.js";
export { onlineDpo, type OnlineDpoConfig, type OnlineDpoOptions } from "./online-dpo/online-dpo.js";
export { ppo } from "./ppo/ppo.js";
export { reinforce } from "./reinforce/reinforce.js";
export { rloo } from "./rloo/rloo.js";
export type { GrpoConfig, GrpoOptions } from "./grpo/settings.js";
export { type PpoConfig, type PpoOptions, ppoSettings } from "./ppo/settings.js";
export type { ReinforceConfig, ReinforceOptions } from "./reinforce/settings.js";
export type { RlooConfig, RlooOptions } from "./rloo/settings.js";
export type { AlgorithmDefinition, RolloutRequest } from "./algorithm-definition.js";
export {
  type AlgorithmOptions,
  ALGORITHM_NAMES,
  type AlgorithmName,
  algorithms,
  selectAlgorithm,
} from "./algorithms.js";
export { defineAlgorithm, type Algorithm, type CustomAlgorithm } from "./define-algorithm.js";
export type { Learner, LearnerState, Metrics } from "./learner.js";
export { sequenceNodes } from "./shared/sequence-nodes.js";
export type { LossNodes } from "./shared/loss-nodes.js";
export { checkSavedState } from "./check-model.js";
export { createLearner } from "./create-learner.js";
export { type SftConfig, resolveSftConfig, sftSettings } from "./sft/settings.js";
export type { SftEvaluation, SftMetrics } from "./sft/sft-learner.js";
export type { GradientLimits, GradientTransport } from "./update/gradient-transport.js";
export { GRAPH_KINDS, type GradientJob, type GradientResult, MicroBatchGraphs } from "./update/micro-batch-graphs.js";
export type { Teacher, TeacherServer } from "./learner.js";
export type { TeacherOptions } from "./teacher.js";
export type { StepMetrics } from "./shared/example-learner.js";
