import { McpConnection, type McpConnectOptions } from "./mcp-connection.js";

/** A server that environments use; opened again after it has failed. */
class McpServer {
  users = 0;
  private opening: Promise<McpConnection> | undefined;

  constructor(private readonly options: McpConnectOptions) {}

  /** Returns the open connection, or opens one. @throws as `McpConnection.connect`. */
  async connect(): Promise<McpConnection> {
    const previous = this.opening;
    const connection = await previous?.catch(() => undefined);
    if (connection !== undefined && !connection.isClosed) return connection;
    // Another environment may have opened it in the meantime.
    if (this.opening === previous) this.opening = McpConnection.connect(this.options);
    return this.opening!;
  }

  async close(): Promise<void> {
    await (await this.opening?.catch(() => undefined))?.close();
  }
}

const sharedServers = new Map<string, McpServer>();

/** An environment's use of a server. */
export interface McpServerLease {
  /** The connection of the running episode. */
  readonly connection: McpConnection;
  /** Opens the connection again if it has failed. @throws as `McpConnection.connect`. */
  connect(): Promise<McpConnection>;
  /** Closes the server, if no other environment uses it. May be called twice. */
  release(): Promise<void>;
}

/**
 * Opens a server, or with `isShared` the one that other environments have opened. @throws as
 * `McpConnection.connect`.
 */
export async function acquireServer(options: McpConnectOptions, isShared: boolean): Promise<McpServerLease> {
  const key = JSON.stringify(options);
  const server = (isShared ? sharedServers.get(key) : undefined) ?? new McpServer(options);
  if (isShared) sharedServers.set(key, server);
  server.users++;
  let isReleased = false;
  const release = async () => {
    if (isReleased) return;
    isReleased = true;
    if (--server.users > 0) return;
    if (sharedServers.get(key) === server) sharedServers.delete(key);
    await server.close();
  };
  try {
    let connection = await server.connect();
    return {
      get connection() {
        return connection;
      },
      connect: async () => (connection = await server.connect()),
      release,
    };
  } catch (error) {
    await release();
    throw error;
  }
}
