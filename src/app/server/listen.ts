import { createServer, type Server } from "node:http";
import { createAdaptorServer } from "@hono/node-server";
import type { Hono } from "hono";
import { listen, serverOptions, type ListenAddress } from "../../core/platform/node/http/listen.js";

/** Options of `listenWithApp`. */
export interface ListenOptions extends ListenAddress {
  /** Milliseconds within which a request must arrive with its body. */
  readonly requestTimeoutMs?: number;
}

/** A listening server with its port and its URL, such as http://127.0.0.1:8080. */
export interface Listener {
  readonly server: Server;
  readonly port: number;
  readonly url: string;
}

/** Starts a server of an app. @throws INVALID_STATE if the address cannot be used. */
export async function listenWithApp(app: Hono, { requestTimeoutMs, ...address }: ListenOptions): Promise<Listener> {
  // The process keeps its own Request and Response: other code compares with them.
  const server = createAdaptorServer({
    fetch: app.fetch,
    overrideGlobalObjects: false,
    createServer,
    serverOptions: serverOptions(requestTimeoutMs),
  }) as Server;
  return { server, ...(await listen(server, address)) };
}
