import { type JsonObject, asJsonObject } from "../../../core/json.js";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { type RawData, WebSocketServer, type WebSocket } from "ws";
import { LlamaGymError, invalidArgument } from "../../../core/errors.js";
import { closeEnv, requireEnv, type Env } from "../../env.js";
import type { MaybePromise } from "../../../core/maybe-promise.js";
import { formatJson, parseMessage } from "../channel.js";
import { MAX_MESSAGE_BYTES } from "../limits.js";
import { describeEnv } from "./describe-env.js";
import { answerHttp } from "./answer-http.js";
import { createEnvTools } from "../mcp/env-tools.js";
import { McpSessions } from "../mcp/mcp-sessions.js";
import { decodeMessage, errorReply, isClientError, isForeignPage } from "./open-env-protocol.js";
import { OpenEnvSession } from "./open-env-session.js";

/** Options of the OpenEnv server. */
export interface ServeOptions {
  /** Default: 8000; 0 picks a free port. */
  readonly port?: number;
  /** Address to listen on. Default: "127.0.0.1", this machine only. */
  readonly host?: string;
  /** Maximum number of concurrent clients over WebSocket, and as many over MCP. Default: 64. */
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
 * Serves environments with OpenEnv's protocol: each WebSocket connection to /ws gets a separate one from `makeEnv`;
 * clients without WebSocket share one through POST /reset, POST /step and GET /state. GET /health, /metadata, /schema and
 * /openapi.json describe it. /mcp serves the tools `reset` and `step` to MCP clients, each with its own environment.
 * @throws INVALID_ARGUMENT for an invalid port, INVALID_STATE for one in use, ENV_INVALID when `makeEnv` returns no Env
 */
export async function serveEnv(makeEnv: () => MaybePromise<Env>, options: ServeOptions = {}): Promise<EnvServer> {
  const { port = 8000, host = "127.0.0.1", maxSessions = 64 } = options;
  if (!Number.isInteger(port) || port < 0 || port > 65535)
    throw invalidArgument(`\`port\` must be an integer from 0 to 65535, got ${port}.`);
  const createEnv = async () => requireEnv(await makeEnv(), "The function given to serveEnv()");
  const firstEnv = await createEnv();
  const description = describeEnv(firstEnv);
  const sharedSession = new OpenEnvSession(firstEnv);
  const tools = createEnvTools(firstEnv, description);
  const mcpSessions = new McpSessions(tools, sharedSession, createEnv, maxSessions);
  const context = { description, sharedSession, mcpSessions };
  const server = createServer((request, response) => void answerHttp(request, response, context));
  try {
    await listen(server, port, host);
  } catch (error) {
    await closeEnv(firstEnv).catch(() => {});
    throw error;
  }
  const sockets = new WebSocketServer({ noServer: true, maxPayload: MAX_MESSAGE_BYTES });
  server.on("upgrade", (request: IncomingMessage, socket, head) => {
    const isKnown = new URL(request.url ?? "/", "http://server").pathname === "/ws";
    if (!isKnown || isForeignPage(request.headers)) {
      socket.end(`HTTP/1.1 ${isKnown ? "403 Forbidden" : "404 Not Found"}\r\nConnection: close\r\n\r\n`);
      return;
    }
    sockets.handleUpgrade(
      request,
      socket,
      head,
      (client) => void serveClient(client, createEnv, sockets.clients.size > maxSessions),
    );
  });
  const { port: boundPort } = server.address() as AddressInfo;
  return {
    url: `http://${host.includes(":") ? `[${host}]` : host}:${boundPort}`,
    port: boundPort,
    close: async () => {
      for (const client of sockets.clients) client.terminate();
      await new Promise((resolve) => {
        server.close(resolve);
        server.closeAllConnections();
      });
      await Promise.all([sharedSession.close(), mcpSessions.close()]);
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

async function serveClient(client: WebSocket, createEnv: () => Promise<Env>, isFull: boolean): Promise<void> {
  const send = (message: JsonObject) => client.send(JSON.stringify(message));
  // Early messages are queued until the environment exists.
  const earlyMessages: RawData[] = [];
  const bufferMessage = (data: RawData) => earlyMessages.push(data);
  client.on("message", bufferMessage);
  client.on("error", () => {});
  if (isFull) {
    send(errorReply("The server has reached its maximum number of sessions; try again later.", "CAPACITY_REACHED"));
    return client.close();
  }
  let session: OpenEnvSession;
  try {
    session = new OpenEnvSession(await createEnv());
  } catch (error) {
    send(errorReply((error as Error).message, "FACTORY_ERROR"));
    return client.close();
  }
  const receive = async (data: RawData) => {
    const reply = await handleMessage(session, decodeMessage(data));
    if (reply === "close") client.close();
    else if (client.readyState === client.OPEN) send(reply);
  };
  // The client is gone, so an error of its environment's close() goes to the server's log.
  const closeSession = () => session.close().catch((error: unknown) => console.warn(String(error)));
  client.on("close", () => void closeSession());
  if (client.readyState !== client.OPEN) return closeSession();
  client.off("message", bufferMessage);
  client.on("message", (data) => void receive(data));
  for (const data of earlyMessages) void receive(data);
}

async function handleMessage(session: OpenEnvSession, text: string): Promise<JsonObject | "close"> {
  const json = parseMessage(text);
  if (json === undefined) return errorReply("The message is not JSON, or nested too deep.", "INVALID_JSON");
  const { type, data = {} } = asJsonObject(json) ?? {};
  if (type === "state") return { type: "state", data: session.state };
  if (type === "close") return "close";
  if (type !== "reset" && type !== "step") {
    const known = "Known: reset, step, state, close.";
    return errorReply(`Unknown message type: ${formatJson(type)}. ${known}`, "UNKNOWN_TYPE");
  }
  const fields = asJsonObject(data);
  if (fields === undefined) return errorReply(`The data of ${type} must be an object.`, "VALIDATION_ERROR");
  try {
    return { type: "observation", data: await session[type](fields) };
  } catch (error) {
    return errorReply((error as Error).message, isClientError(error) ? "VALIDATION_ERROR" : "EXECUTION_ERROR");
  }
}
