export {
  createGateway,
  GatewayTrainer,
  type GatewayEvaluateOptions,
  type GatewayTrainerOptions,
} from "./app/gateway/gateway-trainer.js";
export type { AgentEpisode } from "./app/gateway/session-source.js";
export type { HttpServerOptions } from "./app/server/http-server.js";
