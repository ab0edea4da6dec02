export { ReplayBuffer, type ReplayEpisode, type ReplayOptions, type ReplayState, type ReplayTurn } from "./buffer.js";
export {
  readDemonstrations,
  type Demonstration,
  type DemonstrationTurn,
  type ReadDemonstrations,
} from "./demonstrations.js";
export type { AgentImitationOptions, Lesson } from "./imitation.js";
export type { ImitationConfig, ImitationOptions } from "./settings.js";
export type { WarmStartWatch } from "./warm-start.js";
