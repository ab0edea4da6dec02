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
export { resumeRun, startRun, type Run, type RunOptions } from "./run.js";
export { resolveTrainConfig, type TrainConfig, type TrainOptions } from "./run-settings.js";
