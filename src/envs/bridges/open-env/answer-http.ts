import { type JsonObject, asJsonObject } from "../../../core/json.js";
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import type { MaybePromise } from "../../../core/maybe-promise.js";
import { type CallerRules, refuseCaller } from "../../../core/platform/node/http/check-caller.js";
import { HttpError } from "../../../core/platform/node/http/http-error.js";
import { receiveBody } from "../../../core/platform/node/http/receive-body.js";
import { parseMessage } from "../channel.js";
import { MAX_MESSAGE_BYTES } from "../limits.js";
import type { McpSessions } from "../mcp/mcp-sessions.js";
import { describeApi, type ServerDescription } from "./describe-env.js";
import { type HttpReply, isClientError } from "./open-env-protocol.js";
import type { OpenEnvSession } from "./open-env-session.js";

/** Requests that run or wait for the shared environment; more are answered with status 429. */
const MAX_REQUESTS = 1024;

interface ServerContext {
  readonly description: ServerDescription;
  /** The environment shared by clients without WebSocket. */
  readonly sharedSession: OpenEnvSession;
  readonly mcpSessions: McpSessions;
  readonly callers: CallerRules;
  /** Requests whose body has arrived and that are not answered. */
  runningRequests: number;
}

type Route = (
  context: ServerContext,
  body: JsonObject,
  headers: IncomingHttpHeaders,
) => MaybePromise<Omit<HttpReply, "status"> & { readonly status?: number }>;

const ROUTES: ReadonlyMap<string, Route> = new Map<string, Route>([
  ["GET /health", () => ({ body: { status: "healthy" } })],
  ["GET /metadata", ({ description }) => ({ body: description.metadata })],
  ["GET /schema", ({ description }) => ({ body: description.schema })],
  ["GET /state", ({ sharedSession }) => ({ body: sharedSession.state })],
  ["GET /openapi.json", ({ description }) => ({ body: describeApi(description, [...ROUTES.keys()]) })],
  ["POST /reset", async ({ sharedSession }, body) => ({ body: await sharedSession.reset(body) })],
  ["POST /step", async ({ sharedSession }, body) => ({ body: await sharedSession.step(readAction(body)) })],
  ["POST /mcp", ({ mcpSessions }, body, headers) => mcpSessions.post(body, headers)],
  ["DELETE /mcp", ({ mcpSessions }, _body, headers) => mcpSessions.delete(headers)],
]);

/**
 * Answers a request of OpenEnv's or the Model Context Protocol; errors are `{ detail }` with an
 * error status.
 */
export async function answerHttp(
  request: IncomingMessage,
  response: ServerResponse,
  context: ServerContext,
): Promise<void> {
  const send = ({ status, headers, body }: HttpReply) => {
    response.writeHead(status, { ...headers, ...(body && { "content-type": "application/json" }) });
    response.end(body && JSON.stringify(body));
  };
  try {
    const refusal = refuseCaller(request.headers, context.callers);
    if (refusal !== undefined) {
      const advice = refusal.reason === "host" ? " Name it in `allowedHosts` (--allowed-hosts) to allow it." : "";
      throw new HttpError(403, `${refusal.message}${advice}`);
    }
    const route = findRoute(request);
    const body = request.method === "POST" ? await readBody(request) : {};
    if (context.runningRequests >= MAX_REQUESTS)
      throw new HttpError(429, `The server has ${MAX_REQUESTS} requests already. Try again later.`);
    context.runningRequests++;
    try {
      send({ status: 200, ...(await route(context, body, request.headers)) });
    } finally {
      context.runningRequests--;
    }
  } catch (error) {
    const status = error instanceof HttpError ? error.status : isClientError(error) ? 422 : 500;
    // The unread rest of a body must not be parsed as the next request.
    if (!request.complete) response.setHeader("connection", "close");
    send({ status, body: { detail: (error as Error).message } });
  }
}

function findRoute({ method, url = "/" }: IncomingMessage): Route {
  const pathname = url.replace(/[?#].*$/s, "");
  const route = ROUTES.get(`${method} ${pathname}`);
  if (route !== undefined) return route;
  const routes = [...ROUTES.keys()];
  if (routes.some((known) => known.endsWith(` ${pathname}`)))
    throw new HttpError(405, `${pathname} does not support ${method}.`);
  if (pathname === "/ws") throw new HttpError(426, "/ws takes WebSocket connections.");
  throw new HttpError(404, `There is no ${pathname}. There are: ${routes.join(", ")}, WebSocket /ws.`);
}

async function readBody(request: IncomingMessage): Promise<JsonObject> {
  const body = await receiveBody(request, MAX_MESSAGE_BYTES);
  if (body.length === 0) return {};
  const json = asJsonObject(parseMessage(body.toString("utf8")));
  if (json === undefined) throw new HttpError(400, "The body must be a JSON object.");
  return json;
}

function readAction({ action }: JsonObject): JsonObject {
  const fields = asJsonObject(action);
  if (fields === undefined) throw new HttpError(422, "A step's body must be { action: { ... } }.");
  return fields;
}
