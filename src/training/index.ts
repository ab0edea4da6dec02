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
export type { TrainConfig, TrainOptions } from "./settings.js";
export { Trainer, type TrainerOptions, type TrainingEvent, type TrainingResult, type WatchOptions } from "./trainer.js";
