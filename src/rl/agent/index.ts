export { Agent } from "./agent.js";
export * from "./demonstrations/index.js";
export { randomAction } from "../../envs/random-action.js";
export type { AgentGenerationOptions, AgentOptions, TerminateOptions } from "./agent-options.js";
export { TextAgent, type TextAgentOptions } from "./text-agent.js";
export * from "./extraction/index.js";
