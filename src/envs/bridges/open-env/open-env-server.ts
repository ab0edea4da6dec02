import { createServer, type IncomingMessage } from "node:http";
import { invalidArgument } from "../../../core/errors.js";
import { refuseCaller } from "../../../core/platform/node/http/check-caller.js";
import { listen, serverOptions } from "../../../core/platform/node/http/listen.js";
import { closeEnv, requireEnv, type Env } from "../../env.js";
import type { MaybePromise } from "../../../core/maybe-promise.js";
import { describeEnv } from "./describe-env.js";
import { answerHttp } from "./answer-http.js";
import { createEnvTools } from "../mcp/env-tools.js";
import { McpSessions } from "../mcp/mcp-sessions.js";
import { OpenEnvSession } from "./open-env-session.js";
import { WebSocketSessions } from "./web-socket-sessions.js";

/** Options of the OpenEnv server. */
export interface ServeOptions {
  /** Default: 8000; 0 picks a free port. */
  readonly port?: number;
  /** Address to listen on. Default: "127.0.0.1", this machine only. */
  readonly host?: string;
  /** Maximum number of concurrent clients over WebSocket, and as many over MCP. Default: 64. */
  readonly maxSessions?: number;
  /**
   * Names under which clients reach the server, such as that of a container. Requests to other
   * names are refused, except to addresses, localhost, `host` and the name of this machine: web
   * pages could let their names point to this server.
   */
  readonly allowedHosts?: readonly string[];
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
 * Serves environments with OpenEnv's protocol: each WebSocket connection to /ws gets a separate one
 * from `makeEnv`; clients without WebSocket share one through POST /reset, POST /step and GET
 * /state. GET /health, /metadata, /schema and /openapi.json describe it. /mcp serves the tools
 * `reset` and `step` to MCP clients, each with its own environment.
 * @throws INVALID_ARGUMENT for an invalid port, INVALID_STATE for one in use, ENV_INVALID when
 * `makeEnv` returns no Env
 */
export async function serveEnv(makeEnv: () => MaybePromise<Env>, options: ServeOptions = {}): Promise<EnvServer> {
  const { port = 8000, host = "127.0.0.1", maxSessions = 64, allowedHosts = [] } = options;
  if (!Number.isInteger(port) || port < 0 || port > 65535)
    throw invalidArgument(`\`port\` must be an integer from 0 to 65535, got ${port}.`);
  const createEnv = async () => requireEnv(await makeEnv(), "The function given to serveEnv()");
  const firstEnv = await createEnv();
  const description = describeEnv(firstEnv);
  const sharedSession = new OpenEnvSession(firstEnv);
  const tools = createEnvTools(firstEnv, description);
  const mcpSessions = new McpSessions(tools, sharedSession, createEnv, maxSessions);
  const callers = { hosts: [host, ...allowedHosts], acceptsLocalPages: true };
  const context = { description, sharedSession, mcpSessions, callers, runningRequests: 0 };
  const server = createServer(serverOptions(), (request, response) => void answerHttp(request, response, context));
  let address: { port: number; url: string };
  try {
    address = await listen(server, { host, port });
  } catch (error) {
    await closeEnv(firstEnv).catch(() => {});
    throw error;
  }
  const sockets = new WebSocketSessions(createEnv, maxSessions);
  server.on("upgrade", (request: IncomingMessage, socket, head) => {
    const isKnown = new URL(request.url ?? "/", "http://server").pathname === "/ws";
    if (isKnown && refuseCaller(request.headers, callers) === undefined) return sockets.accept(request, socket, head);
    socket.end(`HTTP/1.1 ${isKnown ? "403 Forbidden" : "404 Not Found"}\r\nConnection: close\r\n\r\n`);
  });
  return {
    ...address,
    close: async () => {
      sockets.close();
      await new Promise((resolve) => {
        server.close(resolve);
        server.closeAllConnections();
      });
      await Promise.all([sharedSession.close(), mcpSessions.close()]);
    },
  };
}
