export { evaluate, type EvaluateOptions, type EvalResult, computeMeanAndError } from "./evaluate.js";
export {
  GrpoTrainer,
  RlooTrainer,
  type GrpoTrainerOptions,
  type PromptTrainOptions,
  type PromptTrainResult,
  type RlooTrainerOptions,
} from "./prompts/grpo-trainer.js";
export { type RewardBatch, type RewardFunction, RewardScorer } from "./prompts/reward-scorer.js";
export { SftTrainer, type SftTrainerOptions, type SftTrainOptions } from "./sft-trainer.js";
export {
  type TrainProgress,
  type TrainResult,
  type TrainLoopOptions,
  type TrainRequests,
  runTrainLoop,
} from "./train-loop.js";
export { type TrainerState, INITIAL_STATE, type ResumedRun, type RolloutCounts } from "./train-task.js";
export { Trainer, type TrainerOptions, type TrainCallbacks, progressFraction } from "./trainer.js";
export { checkFormatVersion } from "./check-format-version.js";
export { checkNoCheckpoints, findLatestCheckpoint, restoreLatestCheckpoint } from "./checkpoints.js";
export { collectGroups } from "./collect-groups.js";
export { type ExactEvaluation, type ExactEvaluations, evaluateExact } from "./evaluate-exact.js";
export { ratePlayers, type EloLadder, type RatedPlayer, type RatedVersion } from "./rate-players.js";
export { readLeague } from "./league.js";
export { LearnerTask } from "./learner-task.js";
export {
  type PromptAlgorithm,
  type ResolvedPromptConfig,
  checkTeachable,
  checkToolSettings,
  checkTruncation,
  promptSettings,
} from "./prompts/prompt-trainer-options.js";
export { PromptTraining, type PromptTrainingRun } from "./prompts/prompt-training.js";
export {
  type RolloutMode,
  SAMPLED_ENV_SLOTS,
  addReturnsToGo,
  describePrompt,
  describeTokens,
  recordRollout,
  recordedGroups,
  toTurnDetail,
} from "./record-rollout.js";
export { describeFirstSessions } from "../rollout/describe-first-rollout.js";
export { countRollout, describeRollout, sampleCompletionRows } from "./rollout-metrics.js";
export { findRunResult, getCheckpointDir, readRunConfig, requireRunConfig, writeRunConfig } from "./run-config.js";
export { GamePlayers } from "./self-play.js";
export {
  MAX_EVAL_EPISODES,
  checkEarlyStopping,
  checkEvaluationSettings,
  checkSelfPlaySettings,
  earlyStoppingSettings,
  loopSettings,
  maxRolloutBytes,
  recordingSettings,
  trainerSettings,
} from "./trainer-settings.js";
export { TrainingMonitor } from "../algorithms/training-monitor.js";
export type { ExampleTrainOptions } from "./example-trainer.js";
