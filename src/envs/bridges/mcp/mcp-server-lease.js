import { McpConnection } from "./mcp-connection.js";
/** A server that environments use; opened again after it has failed. */
class McpServer {
    options;
    users = 0;
    opening;
    constructor(options) {
        this.options = options;
    }
    /** Returns the open connection, or opens one. @throws as `McpConnection.connect`. */
    async connect() {
        const previous = this.opening;
        const connection = await previous?.catch(() => undefined);
        if (connection !== undefined && !connection.isClosed)
            return connection;
        // Another environment may have opened it in the meantime.
        if (this.opening === previous)
            this.opening = McpConnection.connect(this.options);
        return this.opening;
    }
    async close() {
        await (await this.opening?.catch(() => undefined))?.close();
    }
}
const sharedServers = new Map();
/** Opens a server, or with `isShared` the one that other environments have opened. @throws as `McpConnection.connect`. */
export async function acquireServer(options, isShared) {
    const key = JSON.stringify(options);
    const server = (isShared ? sharedServers.get(key) : undefined) ?? new McpServer(options);
    if (isShared)
        sharedServers.set(key, server);
    server.users++;
    let isReleased = false;
    const release = async () => {
        if (isReleased)
            return;
        isReleased = true;
        if (--server.users > 0)
            return;
        if (sharedServers.get(key) === server)
            sharedServers.delete(key);
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
    }
    catch (error) {
        await release();
        throw error;
    }
}
