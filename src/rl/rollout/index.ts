export { CompletionSampler } from "./completion-sampler.js";
export { EnvSlot } from "./env-slot.js";
export { EpisodeRunner, type EpisodeRunnerOptions } from "./episode-runner.js";
export { Episode } from "./episode.js";
export { EXTRACTION_KINDS } from "./extraction.js";
export { requireGame } from "./game-slot.js";
export { closeEnvs, openEnvs } from "./open-envs.js";
export type { CollectOptions, Rollout } from "./rollout-collector.js";
export {
  JobRunner,
  type RolloutJob,
  type RolloutJobResult,
  type RolloutTransport,
  type TrainedWeights,
} from "./rollout-job.js";
export {
  callSettings,
  completionSettings,
  invalidActionSettings,
  promptSettings,
  rewardSettings,
} from "./rollout-settings.js";
export type { EpisodeSpec } from "./rollout-slot.js";
export { type EpisodeSummary, GAME_OPPONENTS, type Trajectory, type Turn } from "./trajectory.js";
export { DEFAULT_CALL_LIMIT } from "./call-limit.js";
