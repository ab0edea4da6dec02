import "./register-openers.js";

export type { TextInterfaceOptions } from "./create-text-interface.js";
export { HttpEnv, type HttpEnvOptions } from "./http/http-env.js";
export { JsonSpace } from "./json-space.js";
export { loadEnvModule, loadEnvSpec, resolveReference } from "./load-env-spec.js";
export { McpEnv, type McpEnvOptions } from "./mcp/mcp-env.js";
export type { EpisodeMessage, McpEpisode, McpReward } from "./mcp/mcp-reward.js";
export { type AgentTask, readTasks } from "./mcp/read-tasks.js";
export { serveMcp, type ServeMcpOptions } from "./mcp/serve-mcp.js";
export type { McpCall } from "./mcp/tool-call-space.js";
export { OpenEnvClient, type OpenEnvOptions } from "./open-env/open-env-client.js";
export { type EnvServer, serveEnv, type ServeOptions } from "./open-env/open-env-server.js";
export { PettingZooGame, type PettingZooOptions } from "./python/petting-zoo-game.js";
export { PythonEnv, type PythonEnvOptions } from "./python/python-env.js";
export { RemoteEnv } from "./remote-env.js";
