import type { Hono } from "hono";
import type { ChatEngine } from "./chat-engine.js";
import type { ModelChatEngine } from "./model-chat-engine.js";
import { mountChatRoutes, type ChatRouteOptions } from "./mount-chat-routes.js";
import { formatOpenAiError } from "./openai-error.js";
import { RequestError } from "./request-error.js";
import { ScoreEngine, type OutputFunctions } from "./score-engine.js";
import { mountScoreRoute } from "./score-route.js";
import { unixTime } from "./wire-format.js";

/** Options of `serveModels`. */
export interface ServeModelsOptions extends ChatRouteOptions {
  /** Custom outputs that /v1/score computes. */
  readonly outputs?: OutputFunctions;
}

/**
 * Adds the routes of models under /v1: completions in all APIs, and the list of models. The first
 * one is the default.
 */
export function serveModels(app: Hono, engines: readonly ModelChatEngine[], options: ServeModelsOptions): void {
  const v1 = app.basePath("/v1");
  const created = unixTime();
  const describe = ({ modelName }: ChatEngine) => ({ id: modelName, object: "model", created, owned_by: "llamagym" });
  const findEngine = (name: string | undefined) => {
    const engine = name === undefined ? engines[0] : engines.find(({ modelName }) => modelName === name);
    if (engine !== undefined) return engine;
    const names = engines.map(({ modelName }) => modelName).join(", ");
    throw new RequestError(404, `There is no model "${name}". Models: ${names}.`, {
      code: "model_not_found",
      param: "model",
    });
  };
  v1.get("/models", (context) => context.json({ object: "list", data: engines.map(describe) }));
  v1.get("/models/:name{.+}", (context) => context.json(describe(findEngine(context.req.param("name")))));
  v1.post("/embeddings", (context) => {
    const reason = "The served models generate text and were not trained for embeddings.";
    return context.json(formatOpenAiError(new RequestError(501, reason, { code: "not_implemented" })), 501);
  });
  const scorers = new Map(engines.map((chat) => [chat, new ScoreEngine(chat.model, options.outputs)]));
  mountScoreRoute(v1, (name) => {
    const chat = findEngine(name);
    return { chat, scores: scorers.get(chat)! };
  });
  mountChatRoutes(v1, findEngine, options);
}
