export {
  ReplayBuffer,
  type ReplayEpisode,
  type ReplayBufferOptions,
  type ReplayBufferState,
  type ReplayTurn,
} from "./replay-buffer.js";
export {
  readDemonstrations,
  type Demonstration,
  type DemonstrationTurn,
  type DemonstrationFile,
} from "../../data/read-demonstrations.js";
export type { AgentDemonstrationOptions, EncodedDemonstrations } from "./demonstration-trainer.js";
export type { OnlineSftConfig, OnlineSftOptions } from "./online-sft-settings.js";
export type { WarmStartCallbacks, WarmStartState } from "./warm-start.js";
