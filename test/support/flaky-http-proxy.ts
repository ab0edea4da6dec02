import {
  createServer,
  request,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";

/**
 * What a proxy does with a request: forwards it, refuses it with a status, or drops it before or
 * after the server has it.
 */
export type Fate =
  | "forward"
  | 429
  | 500
  | "drop"
  | "drop-answer"
  | { readonly answer: object; readonly status?: number };

/** Decides from a request's path, the number of requests before it, and its headers. */
type Decide = (path: string, count: number, headers: IncomingHttpHeaders) => Fate;

/** A request, and the status that the server answered if it has. */
export interface ProxiedRequest {
  readonly path: string;
  readonly body: Buffer;
  status?: number;
}

/** An HTTP proxy on a free port that lets requests and answers get lost. */
export class FlakyHttpProxy {
  readonly requests: ProxiedRequest[] = [];

  private constructor(
    private readonly server: Server,
    /** Address of the server; undefined while there is none, so that requests are dropped. */
    public target: string | undefined,
    private readonly decide: Decide,
  ) {}

  static async start(target: string, decide: Decide): Promise<FlakyHttpProxy> {
    const server = createServer();
    const proxy = new FlakyHttpProxy(server, target, decide);
    server.on("request", (incoming: IncomingMessage, response: ServerResponse) => {
      const chunks: Buffer[] = [];
      incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
      incoming.on("end", () => proxy.handle(incoming, Buffer.concat(chunks), response));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private handle(incoming: IncomingMessage, body: Buffer, response: ServerResponse): void {
    const path = incoming.url!.replace("/api/v1/", "");
    const fate = this.decide(path, this.requests.length, incoming.headers);
    const proxied: ProxiedRequest = { path, body };
    this.requests.push(proxied);
    if (typeof fate === "object") {
      response.writeHead(fate.status ?? 200, { "content-type": "application/json" }).end(JSON.stringify(fate.answer));
      return;
    }
    if (typeof fate === "number") {
      response.writeHead(fate, { "retry-after": "0" }).end();
      return;
    }
    if (fate === "drop" || this.target === undefined) {
      incoming.socket.destroy();
      return;
    }
    const forwarded = request(
      `${this.target}${incoming.url}`,
      { method: incoming.method, headers: incoming.headers },
      (answer) => {
        proxied.status = answer.statusCode;
        if (fate === "drop-answer") {
          answer.resume();
          answer.on("end", () => incoming.socket.destroy());
          return;
        }
        response.writeHead(answer.statusCode!, answer.headers);
        answer.pipe(response);
      },
    );
    forwarded.on("error", () => incoming.socket.destroy());
    forwarded.end(body);
  }
}
