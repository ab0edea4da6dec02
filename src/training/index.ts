export {
  agentPlayers,
  demonstrate,
  expertPlayers,
  randomPlayers,
  type DemonstrateOptions,
  type PlayedEpisode,
  type Player,
  type Players,
} from "./demonstrate.js";
export { evaluate, type EvaluateOptions, type Evaluation } from "./evaluate.js";
export { resumeRun, startRun, type Run, type RunOptions } from "./run.js";
export { resolveTrainConfig, type TrainConfig, type TrainOptions } from "./settings.js";
export { Trainer, type TrainerOptions, type TrainingEvent, type TrainingResult, type WatchOptions } from "./trainer.js";
export type { Prompt, PromptRow } from "./prompts/dataset.js";
export type { PromptTrainingOptions, PromptTrainingResult } from "./prompts/prompt-trainer.js";
export type { RewardBatch, RewardFunction } from "./prompts/reward-functions.js";
export { GrpoTrainer, RlooTrainer, type GrpoTrainerOptions, type RlooTrainerOptions } from "./prompts/trainers.js";
export * from "./sweep/index.js";
