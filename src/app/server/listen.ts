import type { Server } from "node:http";
import { isIP, type AddressInfo } from "node:net";
import { createAdaptorServer } from "@hono/node-server";
import type { Hono } from "hono";
import { LlamaGymError } from "../../core/errors.js";

export interface ListenOptions {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  /** Connections that wait to be accepted. */
  readonly backlog?: number;
}

/** A listening server with its port and its URL, such as http://127.0.0.1:8080. */
export interface Listener {
  readonly server: Server;
  readonly port: number;
  readonly url: string;
}

/** Starts a server of an app. @throws INVALID_STATE if the address cannot be used. */
export async function listen(app: Hono, { host, port, backlog }: ListenOptions): Promise<Listener> {
  // The process keeps its own Request and Response: other code compares with them.
  const server = createAdaptorServer({ fetch: app.fetch, overrideGlobalObjects: false }) as Server;
  const address = host.replace(/^\[|\]$/g, "");
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) =>
      reject(
        new LlamaGymError(
          "INVALID_STATE",
          error.code === "EADDRINUSE"
            ? `Port ${port} of ${host} is in use. Choose another one; 0 takes a free one.`
            : `Listening on ${host}:${port} failed: ${error.message}.`,
          { cause: error },
        ),
      ),
    );
    server.listen({ host: address, port, backlog }, resolve);
  });
  const { port: actualPort } = server.address() as AddressInfo;
  return { server, port: actualPort, url: `http://${isIP(address) === 6 ? `[${address}]` : address}:${actualPort}` };
}

/**
 * Whether a Host header names this machine: by address, as localhost, or by a name in `names`. A web page can let a name of its
 * own point to this machine, but not an address.
 */
export function namesThisMachine(header: string, names: readonly string[] = []): boolean {
  const name = header.replace(/:\d+$/, "").replace(/^\[|\]$/g, "");
  return name === "localhost" || names.includes(name) || isIP(name) > 0;
}
