export { Agent, type EpisodeEnd } from "./agent.js";
export type { AgentGeneration, AgentOptions } from "./options.js";
export { TextAgent, type TextAgentOptions } from "./text-agent.js";
