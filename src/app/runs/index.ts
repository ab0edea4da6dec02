export {
  agentPolicy,
  recordDemonstrations,
  expertPolicy,
  randomPolicy,
  type RecordDemonstrationsOptions,
  type RecordedEpisode,
  type EpisodePolicy,
  type PolicyFactory,
} from "./record-demonstrations.js";
export { evaluate, type EvaluateOptions, type EvalResult } from "../../rl/train/evaluate.js";
export { resumeRun, startRun, type Run, type RunOptions } from "./run.js";
export { resolveTrainConfig, type TrainConfig, type TrainOptions } from "./run-settings.js";
export { Trainer, type TrainerOptions, type TrainCallbacks } from "../../rl/train/trainer.js";
export type { TrainProgress, TrainResult } from "../../rl/train/train-loop.js";
export { SftTrainer, type SftTrainerOptions, type SftTrainOptions } from "../../rl/train/sft-trainer.js";
export type { TrainerState } from "../../rl/train/train-task.js";
export type { DatasetPrompt, PromptRow } from "../../rl/data/prompt-dataset.js";
export type { RewardBatch, RewardFunction } from "../../rl/train/prompts/reward-scorer.js";
export {
  GrpoTrainer,
  RlooTrainer,
  type GrpoTrainerOptions,
  type PromptTrainOptions,
  type PromptTrainResult,
  type RlooTrainerOptions,
} from "../../rl/train/prompts/grpo-trainer.js";
export * from "../sweeps/index.js";
