import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";

/**
 * A TCP proxy on a free port whose connections a test delays, cuts, or leaves open without data.
 */
export class TcpProxy {
  private readonly sockets = new Set<Socket>();
  private readonly silent = new WeakSet<Socket>();
  private mode: "open" | "half-open" | "cut" = "open";

  private constructor(
    private readonly server: Server,
    private readonly delayMs: number,
  ) {}

  static async start(targetPort: number, { delayMs = 0 } = {}): Promise<TcpProxy> {
    const server = createServer();
    const proxy = new TcpProxy(server, delayMs);
    server.on("connection", (socket) => proxy.accept(socket, targetPort));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return proxy;
  }

  get url(): string {
    return `redis://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  /** Closes all connections, and those to come. */
  cut(): void {
    this.mode = "cut";
    for (const socket of this.sockets) socket.destroy();
  }

  /** Drops the data of all connections and leaves them open, as a machine without power does. */
  halfOpen(): void {
    for (const socket of this.sockets) this.silent.add(socket);
    this.mode = "half-open";
  }

  /** Carries the data of new connections; half-open ones stay as they are. */
  acceptNew(): void {
    this.mode = "open";
  }

  /** Closes all connections, and carries new ones. */
  restore(): void {
    this.cut();
    this.mode = "open";
  }

  async stop(): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private accept(client: Socket, port: number): void {
    const target = connect(port, "127.0.0.1");
    this.pipe(client, target);
    this.pipe(target, client);
    if (this.mode === "cut") client.destroy();
  }

  private pipe(from: Socket, to: Socket): void {
    this.sockets.add(from);
    from.on("error", () => {});
    from.on("close", () => {
      this.sockets.delete(from);
      to.destroy();
    });
    from.on("data", (data) => {
      const forward = () => {
        if (this.mode === "open" && !this.silent.has(from) && !to.destroyed) to.write(data);
      };
      if (this.delayMs === 0) forward();
      else setTimeout(forward, this.delayMs);
    });
  }
}
