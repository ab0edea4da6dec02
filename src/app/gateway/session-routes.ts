import { Hono, type Context } from "hono";
import { z } from "zod";
import { mountChatRoutes, type ChatRouteOptions } from "../server/mount-chat-routes.js";
import { sendJson } from "../server/node-bindings.js";
import { readJsonBody } from "../server/read-json-body.js";
import { parseBody } from "../server/wire-format.js";
import type { SessionStore } from "./session-store.js";

/** Characters of a task's name, which is kept with each of its sessions. */
const MAX_TASK_LENGTH = 1000;

const finiteReward = z.number({ error: "a reward must be a finite number" });
const sessionBody = z.strictObject({ task: z.string().max(MAX_TASK_LENGTH).optional() });
const rewardBody = z.strictObject({ reward: finiteReward, turn: z.int().min(0).optional() });
const endBody = z.strictObject({ reward: finiteReward.optional(), truncated: z.boolean().optional() });

/**
 * Adds the routes that open, reward and end sessions, and each session's completions under
 * /sessions/ID/v1.
 */
export function mountSessionRoutes(app: Hono, store: SessionStore, options: ChatRouteOptions = {}): void {
  const findSession = (context: Context) => store.get(context.req.param("id")!);
  app.post("/sessions", async (context) => {
    const { task } = parseBody(sessionBody, await readJsonBody(context));
    const { id } = store.create(task);
    return context.json({ id, baseURL: sessionUrl(new URL(context.req.url).origin, id) }, 201);
  });
  app.post("/sessions/:id/reward", async (context) => {
    const { reward, turn } = parseBody(rewardBody, await readJsonBody(context));
    const session = findSession(context);
    session.reward(reward, turn);
    return sendJson(context, { id: session.id, turns: session.turns });
  });
  app.post("/sessions/:id/end", async (context) => {
    const { reward, truncated } = parseBody(endBody, await readJsonBody(context));
    const session = findSession(context);
    if (reward !== undefined) session.reward(reward);
    const record = await store.end(session.id, truncated === true ? "truncated" : "terminated");
    return sendJson(context, { id: session.id, turns: session.turns, return: record?.summary.return ?? 0 });
  });
  const v1 = new Hono();
  v1.get("/models", (context) => {
    const { modelName } = findSession(context);
    return context.json({ object: "list", data: [{ id: modelName, object: "model", owned_by: "llamagym" }] });
  });
  mountChatRoutes(v1, (_model, context) => findSession(context), options);
  app.route("/sessions/:id/v1", v1);
}

/** Returns the OpenAI-compatible base URL of a session. */
export function sessionUrl(origin: string, id: string): string {
  return `${origin}/sessions/${id}/v1`;
}
