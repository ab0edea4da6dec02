import type { IncomingMessage, ServerResponse } from "node:http";
import { asJsonObject, type JsonObject } from "../channel.js";
import type { ServerDescription } from "./describe-env.js";
import { isClientError, MAX_MESSAGE_BYTES } from "./open-env-protocol.js";
import type { OpenEnvSession } from "./open-env-session.js";

interface ServerContext {
  readonly description: ServerDescription;
  /** The environment shared by clients without WebSocket. */
  readonly sharedSession: OpenEnvSession;
}

class HttpError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

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
    sendReply(200, await routeRequest(request, context));
  } catch (error) {
    const status = error instanceof HttpError ? error.status : isClientError(error) ? 422 : 500;
    // The unread rest of a body must not be parsed as the next request.
    if (!request.complete) response.setHeader("connection", "close");
    sendReply(status, { detail: (error as Error).message });
  }
}

async function routeRequest(
  request: IncomingMessage,
  { description, sharedSession }: ServerContext,
): Promise<JsonObject> {
  const { pathname } = new URL(request.url ?? "/", "http://server");
  const routes: Readonly<Record<string, () => Promise<JsonObject> | JsonObject>> = {
    "GET /health": () => ({ status: "healthy" }),
    "GET /metadata": () => description.metadata,
    "GET /schema": () => description.schema,
    "GET /state": () => sharedSession.state,
    "POST /reset": async () => sharedSession.reset(await readBody(request)),
    "POST /step": async () => {
      const { action } = await readBody(request);
      const fields = asJsonObject(action);
      if (fields === undefined) throw new HttpError(422, "A step's body must be { action: { ... } }.");
      return sharedSession.step(fields);
    },
  };
  const key = `${request.method} ${pathname}`;
  if (Object.hasOwn(routes, key)) return routes[key]();
  const isKnownPath = Object.keys(routes).some((known) => known.endsWith(` ${pathname}`));
  if (isKnownPath) throw new HttpError(405, `${pathname} does not take ${request.method}.`);
  if (pathname === "/ws") throw new HttpError(426, "/ws takes WebSocket connections.");
  throw new HttpError(404, `There is no ${pathname}. There are: ${Object.keys(routes).join(", ")}, WebSocket /ws.`);
}

async function readBody(request: IncomingMessage): Promise<JsonObject> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > MAX_MESSAGE_BYTES) throw new HttpError(413, `A body may have ${MAX_MESSAGE_BYTES} bytes.`);
    chunks.push(chunk);
  }
  if (size === 0) return {};
  try {
    const json = asJsonObject(JSON.parse(Buffer.concat(chunks).toString("utf8")));
    if (json !== undefined) return json;
  } catch (error) {
    throw new HttpError(400, `The body is no JSON: ${(error as Error).message}`);
  }
  throw new HttpError(400, "The body must be a JSON object.");
}
