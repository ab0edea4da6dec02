export { evaluate, type EvaluateOptions, type EvalResult } from "./evaluate.js";
export {
  GrpoTrainer,
  RlooTrainer,
  type GrpoTrainerOptions,
  type PromptTrainOptions,
  type PromptTrainResult,
  type RlooTrainerOptions,
} from "./prompts/grpo-trainer.js";
export type { RewardBatch, RewardFunction } from "./prompts/reward-scorer.js";
export { SftTrainer, type SftTrainerOptions, type SftTrainOptions } from "./sft-trainer.js";
export type { TrainProgress, TrainResult } from "./train-loop.js";
export type { TrainerState } from "./train-task.js";
export { Trainer, type TrainerOptions, type TrainCallbacks } from "./trainer.js";
