import { WebSocket, type RawData } from "ws";
import { LlamaGymError } from "../../../core/errors.js";
import type { JsonValue } from "../../../core/json.js";
import { asJsonObject, bridgeError, type Channel, type JsonObject, formatJson, truncateText } from "../channel.js";
import { requestJson, type HttpServer } from "../http/http-client.js";
import { MAX_MESSAGE_BYTES } from "./open-env-protocol.js";

/** Timeout of the closing handshake in milliseconds. */
const CLOSE_TIMEOUT_MS = 1000;

interface PendingCall {
  readonly resolve: (reply: JsonObject) => void;
  readonly reject: (error: Error) => void;
}

/**
 * A session on an OpenEnv server over WebSocket. Replies have no id, so a late one would be mistaken
 * for the next: a call that times out closes the connection, and all later calls fail with the first error.
 */
export class WebSocketChannel implements Channel {
  private pendingCall: PendingCall | undefined;
  private failure: Error | undefined;
  private queue: Promise<unknown> = Promise.resolve();

  private constructor(
    readonly name: string,
    private readonly socket: WebSocket,
    private readonly timeout: number,
  ) {
    socket.on("message", (data) => this.receive(data));
    socket.on("error", (error) => this.fail(`broke the connection: ${error.message}.`, error));
    socket.on("close", () => this.fail("closed the connection."));
  }

  /** @throws ENV_FAILED when no WebSocket server responds at `url`. */
  static connect({ name, url, timeout, headers }: HttpServer, connectTimeout: number): Promise<WebSocketChannel> {
    const socket = new WebSocket(url, { handshakeTimeout: connectTimeout, maxPayload: MAX_MESSAGE_BYTES, headers });
    return new Promise((resolve, reject) => {
      socket.once("open", () => {
        socket.removeAllListeners();
        resolve(new WebSocketChannel(name, socket, timeout));
      });
      socket.once("unexpected-response", (_request, { statusCode }) => {
        socket.removeAllListeners().on("error", () => {});
        socket.terminate();
        const advice = 'It may be of a version without sessions: try { transport: "http" }.';
        reject(bridgeError(name, `takes no WebSocket connection at ${url} (status ${statusCode}). ${advice}`));
      });
      socket.once("error", (error: NodeJS.ErrnoException) => {
        reject(
          bridgeError(
            name,
            `cannot be reached at ${url} (${error.code ?? error.message}). Is the server running?`,
            error,
          ),
        );
      });
    });
  }

  call(method: string, params: JsonObject): Promise<JsonValue> {
    const result = this.queue.then(() => this.send(method, params));
    this.queue = result.catch(() => {});
    return result;
  }

  async close(): Promise<void> {
    const { socket } = this;
    this.failure ??= bridgeError(this.name, "was closed.");
    this.pendingCall?.reject(this.failure);
    if (socket.readyState === socket.CLOSED) return;
    const closed = new Promise((resolve) => socket.once("close", resolve));
    const timer = setTimeout(() => socket.terminate(), CLOSE_TIMEOUT_MS);
    if (socket.readyState === socket.OPEN) socket.send(JSON.stringify({ type: "close" }));
    socket.close();
    await closed;
    clearTimeout(timer);
  }

  private async send(type: string, data: JsonObject): Promise<JsonValue> {
    if (this.failure !== undefined) throw this.failure;
    const timer = setTimeout(() => this.fail(`did not answer ${type} within ${this.timeout} ms.`), this.timeout);
    try {
      const reply = await new Promise<JsonObject>((resolve, reject) => {
        this.pendingCall = { resolve, reject };
        this.socket.send(JSON.stringify(type === "state" ? { type } : { type, data }));
      });
      return this.readResult(type, reply);
    } finally {
      clearTimeout(timer);
      this.pendingCall = undefined;
    }
  }

  private readResult(type: string, reply: JsonObject): JsonValue {
    const data = asJsonObject(reply.data) ?? {};
    if (reply.type === (type === "state" ? "state" : "observation")) return data;
    if (reply.type !== "error") {
      throw bridgeError(
        this.name,
        `answered ${type} with a message of type ${truncateText(JSON.stringify(reply.type ?? null))}.`,
      );
    }
    const { message = "no reason given", code = "no code", errors } = data;
    const details = errors === undefined ? "" : ` ${truncateText(JSON.stringify(errors), 500)}`;
    const text = `${formatJson(message)} (${formatJson(code)})${details}`;
    if (code === "VALIDATION_ERROR" && type === "step") {
      throw new LlamaGymError("ENV_ACTION_INVALID", `${this.name} refused the action: ${text}`);
    }
    throw bridgeError(this.name, `failed in ${type}: ${text}`);
  }

  private receive(data: RawData): void {
    const text = Array.isArray(data)
      ? Buffer.concat(data).toString("utf8")
      : Buffer.from(data as Buffer).toString("utf8");
    let reply: JsonObject | undefined;
    try {
      reply = asJsonObject(JSON.parse(text));
    } catch {
      reply = undefined;
    }
    if (reply === undefined) this.fail(`sent what is no message: ${truncateText(text)}`);
    else if (this.pendingCall !== undefined) this.pendingCall.resolve(reply);
    else this.fail(`spoke unasked: ${truncateText(formatJson(asJsonObject(reply.data)?.message ?? text))}`);
  }

  private fail(problem: string, cause?: unknown): void {
    if (this.failure !== undefined) return;
    this.failure = bridgeError(this.name, problem, cause);
    this.pendingCall?.reject(this.failure);
    this.socket.terminate();
  }
}

/** An OpenEnv server over plain HTTP, with one environment for all clients. */
export class OpenEnvHttpChannel implements Channel {
  constructor(private readonly server: HttpServer) {}

  get name(): string {
    return this.server.name;
  }

  call(method: string, params: JsonObject): Promise<JsonValue> {
    return requestJson(this.server, `/${method}`, method === "step" ? { action: params } : params);
  }

  async close(): Promise<void> {}
}
