export { Agent } from "./agent.js";
export * from "./demonstrations/index.js";
export { randomAction } from "../../envs/index.js";
export type { AgentGenerationOptions, AgentOptions, TerminateOptions } from "./agent-options.js";
export { TextAgent, type TextAgentOptions, type ActionMode, checkActionRegex } from "./text-agent.js";
export * from "./extraction/index.js";
export { createAgentOpponent } from "./agent-opponent.js";
export { agentSettings, textAgentSettings } from "./agent-settings.js";
export { onlineSftSettings } from "./demonstrations/online-sft-settings.js";
