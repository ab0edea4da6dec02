import type { Server, ServerOptions } from "node:http";
import { isIP, type AddressInfo } from "node:net";
import { LlamaGymError } from "../../../errors.js";

/** Milliseconds within which the headers of a request must arrive. */
const HEADERS_TIMEOUT_MS = 20_000;

/** Milliseconds within which a request must arrive with its body: 8 MiB at 140 kB a second. */
export const REQUEST_TIMEOUT_MS = 60_000;

/** Milliseconds between two searches for connections that exceed these times. */
const CHECK_INTERVAL_MS = 1_000;

/**
 * Options that every HTTP server here has: Node ends connections whose request does not arrive in
 * time, with status 408.
 */
export function serverOptions(requestTimeoutMs = REQUEST_TIMEOUT_MS): ServerOptions {
  return {
    headersTimeout: Math.min(HEADERS_TIMEOUT_MS, requestTimeoutMs),
    requestTimeout: requestTimeoutMs,
    connectionsCheckingInterval: Math.min(CHECK_INTERVAL_MS, requestTimeoutMs),
  };
}

/** Where a server listens. */
export interface ListenAddress {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
}

/**
 * Connections that wait to be accepted: as many as the system allows, because others than clients
 * may fill the queue.
 */
const BACKLOG = 4096;

/**
 * Starts to listen, and returns the port and the URL, such as http://127.0.0.1:8080. @throws
 * INVALID_STATE if the address cannot be used.
 */
export async function listen(server: Server, { host, port }: ListenAddress): Promise<{ port: number; url: string }> {
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
    server.listen({ host: address, port, backlog: BACKLOG }, resolve);
  });
  const { port: actualPort } = server.address() as AddressInfo;
  return { port: actualPort, url: `http://${isIP(address) === 6 ? `[${address}]` : address}:${actualPort}` };
}
