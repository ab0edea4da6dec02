import type { IncomingMessage, ServerResponse } from "node:http";
import { asObject, type JsonObject } from "./channel.js";
import type { ServedDescription } from "./open-env-description.js";
import { isRefusal, MAX_MESSAGE } from "./open-env-protocol.js";
import type { OpenEnvSession } from "./open-env-session.js";

interface Served {
  readonly description: ServedDescription;
  /** The environment of all clients that come without WebSocket. */
  readonly shared: OpenEnvSession;
}

class HttpProblem extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/** Answers a request of OpenEnv's HTTP protocol; what goes wrong is `{ detail }` with a status of its own. */
export async function answerHttp(request: IncomingMessage, response: ServerResponse, served: Served): Promise<void> {
  const reply = (status: number, body: JsonObject) => {
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify(body));
  };
  try {
    reply(200, await route(request, served));
  } catch (error) {
    const status = error instanceof HttpProblem ? error.status : isRefusal(error) ? 422 : 500;
    // The rest of a body that is not read must not be taken for the next request.
    if (!request.complete) response.setHeader("connection", "close");
    reply(status, { detail: (error as Error).message });
  }
}

async function route(request: IncomingMessage, { description, shared }: Served): Promise<JsonObject> {
  const { pathname } = new URL(request.url ?? "/", "http://server");
  const routes: Readonly<Record<string, () => Promise<JsonObject> | JsonObject>> = {
    "GET /health": () => ({ status: "healthy" }),
    "GET /metadata": () => description.metadata,
    "GET /schema": () => description.schema,
    "GET /state": () => shared.state,
    "POST /reset": async () => shared.reset(await body(request)),
    "POST /step": async () => {
      const { action } = await body(request);
      const fields = asObject(action);
      if (fields === undefined) throw new HttpProblem(422, "A step's body must be { action: { ... } }.");
      return shared.step(fields);
    },
  };
  const key = `${request.method} ${pathname}`;
  if (Object.hasOwn(routes, key)) return routes[key]();
  const isPath = Object.keys(routes).some((known) => known.endsWith(` ${pathname}`));
  if (isPath) throw new HttpProblem(405, `${pathname} does not take ${request.method}.`);
  if (pathname === "/ws") throw new HttpProblem(426, "/ws takes WebSocket connections.");
  throw new HttpProblem(404, `There is no ${pathname}. There are: ${Object.keys(routes).join(", ")}, WebSocket /ws.`);
}

async function body(request: IncomingMessage): Promise<JsonObject> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    size += part.length;
    if (size > MAX_MESSAGE) throw new HttpProblem(413, `A body may have ${MAX_MESSAGE} bytes.`);
    parts.push(part);
  }
  if (size === 0) return {};
  try {
    const json = asObject(JSON.parse(Buffer.concat(parts).toString("utf8")));
    if (json !== undefined) return json;
  } catch (error) {
    throw new HttpProblem(400, `The body is no JSON: ${(error as Error).message}`);
  }
  throw new HttpProblem(400, "The body must be a JSON object.");
}
