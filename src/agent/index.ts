export { Agent, type EpisodeEnd } from "./agent.js";
export * from "./replay/index.js";
export { randomAction } from "./random-action.js";
export type { AgentGeneration, AgentOptions } from "./options.js";
export { TextAgent, type TextAgentOptions } from "./text-agent.js";
export * from "./extraction/index.js";
