import { existsSync } from "node:fs";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { once } from "node:events";
import { chromium, type Browser } from "playwright-core";
import { startCommand } from "./command.js";

const CHROMIUM = "/usr/bin/chromium";

/** Whether tests in a browser are skipped: there is no Chromium, and this is not CI. */
export const skipsBrowser = !existsSync(CHROMIUM) && process.env.CI === undefined;
if (skipsBrowser) console.warn(`Tests in a browser are skipped: ${CHROMIUM} is missing (apt-get install chromium).`);

/** Flags with which WebGPU runs on Chromium's SwiftShader. */
const WEBGPU = [
  "--enable-unsafe-webgpu",
  "--use-webgpu-adapter=swiftshader",
  "--enable-features=Vulkan",
  "--ignore-gpu-blocklist",
];

export function launchBrowser({ hasWebgpu = false }: { readonly hasWebgpu?: boolean } = {}): Promise<Browser> {
  const args = ["--headless", "--no-sandbox", "--disable-background-networking"];
  return chromium.launch({ executablePath: CHROMIUM, args: [...args, ...(hasWebgpu ? WEBGPU : ["--disable-gpu"])] });
}

/** A running `llamagym dashboard`. */
export interface DashboardProcess {
  /** Link with the token. */
  readonly url: string;
  stop(): Promise<void>;
}

/** Starts `llamagym dashboard` on a free port. */
export async function startDashboardCommand(runs: string): Promise<DashboardProcess> {
  const child = startCommand(["dashboard", runs, "--port", "0"]);
  let output = "";
  const url = await new Promise<string>((resolve, reject) => {
    const read = (data: Buffer): void => {
      output += data.toString();
      const link = /http:\/\/\S+/.exec(output);
      if (link !== null) resolve(link[0]);
    };
    child.stdout.on("data", read);
    child.stderr.on("data", read);
    child.once("exit", () => reject(new Error(`llamagym dashboard ended: ${output}`)));
  });
  return {
    url,
    stop: async () => {
      child.kill();
      if (child.exitCode === null) await once(child, "exit");
    },
  };
}

/** A connection that can be cut: forwards a port of this machine. */
export interface Proxy {
  readonly port: number;
  /** Closes all connections and refuses new ones until `restore`. */
  cut(): void;
  restore(): void;
  close(): void;
}

export async function startProxy(target: number): Promise<Proxy> {
  const sockets = new Set<Socket>();
  let isCut = false;
  const server = createServer((client) => {
    if (isCut) {
      client.destroy();
      return;
    }
    const upstream = connect(target, "127.0.0.1");
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", () => socket.destroy());
      socket.on("close", () => {
        sockets.delete(socket);
        client.destroy();
        upstream.destroy();
      });
    }
    client.pipe(upstream).pipe(client);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const drop = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    port: (server.address() as AddressInfo).port,
    cut: () => {
      isCut = true;
      drop();
    },
    restore: () => {
      isCut = false;
    },
    close: () => {
      drop();
      server.close();
    },
  };
}
