import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/**
 * Whether this machine has redis-server. Where CI is set, tests run in any case, and fail without
 * it.
 */
export const hasRedis = process.env.CI !== undefined || spawnSync("redis-server", ["--version"]).status === 0;
if (!hasRedis) console.warn("Skipped: tests with Redis need redis-server (Debian: apt-get install redis-server).");

/** A redis-server on a free port with an append-only file. */
export class RedisServer {
  private process: ChildProcess | undefined;

  private constructor(
    readonly port: number,
    private readonly folder: string,
  ) {}

  static async start(args: readonly string[] = []): Promise<RedisServer> {
    const server = new RedisServer(await findFreePort(), await mkdtemp(join(tmpdir(), "redis-")));
    await server.restart(args);
    return server;
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  /** Starts the server again with its data. */
  async restart(args: readonly string[] = []): Promise<void> {
    const persistence = ["--appendonly", "yes", "--appendfsync", "always", "--save", ""];
    const options = ["--port", String(this.port), "--bind", "127.0.0.1", "--dir", this.folder, ...persistence, ...args];
    this.process = spawn("redis-server", options, { stdio: "ignore" });
    while (!(await isListening(this.port))) {
      if (this.process.exitCode !== null) throw new Error("redis-server did not start.");
      await sleep(20);
    }
  }

  async kill(): Promise<void> {
    const { process: running } = this;
    this.process = undefined;
    if (running === undefined || running.exitCode !== null) return;
    const exited = new Promise((resolve) => running.once("exit", resolve));
    running.kill("SIGKILL");
    await exited;
  }

  async stop(): Promise<void> {
    await this.kill();
    await rm(this.folder, { recursive: true, force: true });
  }
}

async function findFreePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { readonly port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}
