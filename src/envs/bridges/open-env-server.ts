import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { type RawData, WebSocketServer, type WebSocket } from "ws";
import { LlamaGymError } from "../../errors.js";
import type { Env } from "../env.js";
import type { MaybePromise } from "../maybe-promise.js";
import { asObject, type JsonObject } from "./channel.js";
import { describeEnv } from "./open-env-description.js";
import { answerHttp } from "./open-env-http.js";
import { errorMessage, isRefusal, MAX_MESSAGE } from "./open-env-protocol.js";
import { OpenEnvSession } from "./open-env-session.js";

export interface ServeOptions {
  /** 8000 when not said; 0 takes a free one. */
  readonly port?: number;
  /** The address to listen at; "127.0.0.1", this machine only, when not said. */
  readonly host?: string;
  /** Clients at a time; 64 when not said. */
  readonly maxSessions?: number;
}

/** A running server. */
export interface EnvServer {
  /** Such as http://127.0.0.1:8000. */
  readonly url: string;
  readonly port: number;
  /** Ends all sessions and stops listening. */
  close(): Promise<void>;
}

/**
 * Serves an environment by OpenEnv's protocol: each WebSocket connection to /ws gets one of its own from `makeEnv`;
 * clients without WebSocket share another one by POST /reset, POST /step and GET /state. GET /health, /metadata and
 * /schema tell of it.
 * @throws INVALID_ARGUMENT for a port that cannot be, INVALID_STATE for one that is taken
 */
export async function serveEnv(makeEnv: () => MaybePromise<Env>, options: ServeOptions = {}): Promise<EnvServer> {
  const { port = 8000, host = "127.0.0.1", maxSessions = 64 } = options;
  if (!Number.isInteger(port) || port < 0 || port > 65535) {
    throw new LlamaGymError("INVALID_ARGUMENT", `A port is an integer from 0 to 65535, got ${port}.`);
  }
  const first = await makeEnv();
  const description = describeEnv(first);
  const shared = new OpenEnvSession(first);
  const server = createServer((request, response) => void answerHttp(request, response, { description, shared }));
  try {
    await listen(server, port, host);
  } catch (error) {
    await first.close();
    throw error;
  }
  const sockets = new WebSocketServer({ noServer: true, maxPayload: MAX_MESSAGE });
  server.on("upgrade", (request: IncomingMessage, socket, head) => {
    if (new URL(request.url ?? "/", "http://server").pathname !== "/ws") {
      socket.end("HTTP/1.1 404 Not Found\r\nConnection: close\r\n\r\n");
      return;
    }
    sockets.handleUpgrade(
      request,
      socket,
      head,
      (client) => void serveClient(client, makeEnv, sockets.clients.size > maxSessions),
    );
  });
  const { port: taken } = server.address() as AddressInfo;
  return {
    url: `http://${host.includes(":") ? `[${host}]` : host}:${taken}`,
    port: taken,
    close: async () => {
      for (const client of sockets.clients) client.terminate();
      await new Promise((resolve) => {
        server.close(resolve);
        server.closeAllConnections();
      });
      await shared.close();
    },
  };
}

function listen(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => {
      const advice =
        error.code === "EADDRINUSE" ? "The port is taken: choose another, or 0 for a free one." : error.message;
      reject(new LlamaGymError("INVALID_STATE", `Cannot listen at ${host} port ${port}. ${advice}`, { cause: error }));
    });
    server.listen(port, host, resolve);
  });
}

async function serveClient(client: WebSocket, makeEnv: () => MaybePromise<Env>, isFull: boolean): Promise<void> {
  const send = (message: JsonObject) => client.send(JSON.stringify(message));
  // What a client sends at once waits until its environment is there.
  const early: RawData[] = [];
  const keep = (data: RawData) => early.push(data);
  client.on("message", keep);
  client.on("error", () => {});
  if (isFull) {
    send(errorMessage("The server has as many sessions as it takes; try again later.", "CAPACITY_REACHED"));
    return client.close();
  }
  let session: OpenEnvSession;
  try {
    session = new OpenEnvSession(await makeEnv());
  } catch (error) {
    send(errorMessage((error as Error).message, "FACTORY_ERROR"));
    return client.close();
  }
  const receive = async (data: RawData) => {
    const reply = await answerMessage(session, textOf(data));
    if (reply === "close") client.close();
    else if (client.readyState === client.OPEN) send(reply);
  };
  client.on("close", () => void session.close());
  if (client.readyState !== client.OPEN) return session.close();
  client.off("message", keep);
  client.on("message", (data) => void receive(data));
  for (const data of early) void receive(data);
}

function textOf(data: RawData): string {
  if (Array.isArray(data)) return Buffer.concat(data).toString("utf8");
  return Buffer.from(data as Buffer).toString("utf8");
}

async function answerMessage(session: OpenEnvSession, text: string): Promise<JsonObject | "close"> {
  let message: JsonObject | undefined;
  try {
    message = asObject(JSON.parse(text));
  } catch (error) {
    return errorMessage(`Invalid JSON: ${(error as Error).message}`, "INVALID_JSON");
  }
  const { type, data = {} } = message ?? {};
  if (type === "state") return { type: "state", data: session.state };
  if (type === "close") return "close";
  if (type !== "reset" && type !== "step") {
    return errorMessage(
      `Unknown message type: ${JSON.stringify(type)}. Known: reset, step, state, close.`,
      "UNKNOWN_TYPE",
    );
  }
  const fields = asObject(data);
  if (fields === undefined) return errorMessage(`The data of ${type} must be an object.`, "VALIDATION_ERROR");
  try {
    return { type: "observation", data: await session[type](fields) };
  } catch (error) {
    return errorMessage((error as Error).message, isRefusal(error) ? "VALIDATION_ERROR" : "EXECUTION_ERROR");
  }
}
