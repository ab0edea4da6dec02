import { type JsonObject, asJsonObject } from "../../../core/json.js";
import type { IncomingMessage, ServerResponse } from "node:http";
import { parseMessage } from "../channel.js";
import { MAX_MESSAGE_BYTES } from "../limits.js";
import { describeApi, type ServerDescription } from "./describe-env.js";
import { isClientError } from "./open-env-protocol.js";
import type { OpenEnvSession } from "./open-env-session.js";

interface ServerContext {
  readonly description: ServerDescription;
  /** The environment shared by clients without WebSocket. */
  readonly sharedSession: OpenEnvSession;
}

type Route = (context: ServerContext, body: JsonObject) => Promise<JsonObject> | JsonObject;

class HttpError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

const ROUTES: ReadonlyMap<string, Route> = new Map<string, Route>([
  ["GET /health", () => ({ status: "healthy" })],
  ["GET /metadata", ({ description }) => description.metadata],
  ["GET /schema", ({ description }) => description.schema],
  ["GET /state", ({ sharedSession }) => sharedSession.state],
  ["GET /openapi.json", ({ description }) => describeApi(description, [...ROUTES.keys()])],
  ["POST /reset", ({ sharedSession }, body) => sharedSession.reset(body)],
  ["POST /step", ({ sharedSession }, body) => sharedSession.step(readAction(body))],
  ["POST /mcp", (_context, body) => answerMcp(body)],
]);

/** Answers a request of OpenEnv's HTTP protocol; errors are `{ detail }` with an error status. */
export async function answerHttp(
  request: IncomingMessage,
  response: ServerResponse,
  context: ServerContext,
): Promise<void> {
  const sendReply = (status: number, body: JsonObject) => {
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify(body));
  };
  try {
    const route = findRoute(request);
    sendReply(200, await route(context, request.method === "POST" ? await readBody(request) : {}));
  } catch (error) {
    const status = error instanceof HttpError ? error.status : isClientError(error) ? 422 : 500;
    // The unread rest of a body must not be parsed as the next request.
    if (!request.complete) response.setHeader("connection", "close");
    sendReply(status, { detail: (error as Error).message });
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
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > MAX_MESSAGE_BYTES) throw new HttpError(413, `A body may have at most ${MAX_MESSAGE_BYTES} bytes.`);
    chunks.push(chunk);
  }
  if (size === 0) return {};
  const json = asJsonObject(parseMessage(Buffer.concat(chunks).toString("utf8")));
  if (json === undefined) throw new HttpError(400, "The body must be a JSON object.");
  return json;
}

function readAction({ action }: JsonObject): JsonObject {
  const fields = asJsonObject(action);
  if (fields === undefined) throw new HttpError(422, "A step's body must be { action: { ... } }.");
  return fields;
}

/** Answers a JSON-RPC request of the Model Context Protocol: environments of llamagym have no tools. */
function answerMcp({ jsonrpc, id = null, method }: JsonObject): JsonObject {
  const reply = { jsonrpc: "2.0", id };
  if (jsonrpc !== "2.0" || typeof method !== "string")
    return { ...reply, error: { code: -32600, message: 'A request needs "jsonrpc": "2.0" and a method.' } };
  if (method === "tools/list") return { ...reply, result: { tools: [] } };
  return { ...reply, error: { code: -32601, message: `${method} is not supported: the environment has no tools.` } };
}
