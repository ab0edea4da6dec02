import { type JsonObject, type JsonValue, asJsonObject } from "../../../core/json.js";
import { excerpt } from "../../../core/format.js";
import { WebSocket, type RawData } from "ws";
import { LlamaGymError } from "../../../core/errors.js";
import { bridgeError, formatJson, parseMessage, SerialChannel } from "../channel.js";
import type { Channel } from "../channel.js";
import { requestJson, type HttpServer } from "../http/http-client.js";
import { MAX_MESSAGE_BYTES } from "../limits.js";
import { decodeMessage } from "./open-env-protocol.js";

/** Timeout of the closing handshake in milliseconds. */
const CLOSE_TIMEOUT_MS = 1000;

/**
 * A session on an OpenEnv server over WebSocket. Replies have no id, so a late one would be
 * mistaken for the next.
 */
export class WebSocketChannel extends SerialChannel {
  private constructor(
    name: string,
    private readonly socket: WebSocket,
    timeout: number,
  ) {
    super(name, timeout);
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
        const advice = 'Servers before OpenEnv 0.2 have no sessions: try { transport: "http" }.';
        reject(bridgeError(name, `accepts no WebSocket connection at ${url} (status ${statusCode}). ${advice}`));
      });
      socket.once("error", (error: NodeJS.ErrnoException) => {
        const reason = error.code ?? error.message;
        reject(bridgeError(name, `cannot be reached at ${url} (${reason}). Is the server running?`, error));
      });
    });
  }

  override async close(): Promise<void> {
    const { socket } = this;
    this.markClosed();
    if (socket.readyState === socket.CLOSED) return;
    const closed = new Promise((resolve) => socket.once("close", resolve));
    const timer = setTimeout(() => socket.terminate(), CLOSE_TIMEOUT_MS);
    if (socket.readyState === socket.OPEN) socket.send(JSON.stringify({ type: "close" }));
    socket.close();
    await closed;
    clearTimeout(timer);
  }

  protected override send(_id: number, type: string, data: JsonObject): void {
    // Servers refuse a request of the state with data.
    this.socket.send(JSON.stringify(type === "state" ? { type } : { type, data }));
  }

  protected override terminate(): void {
    this.socket.terminate();
  }

  protected override readResult(type: string, reply: JsonObject): JsonValue {
    const data = asJsonObject(reply.data) ?? {};
    if (reply.type === (type === "state" ? "state" : "observation")) return data;
    if (reply.type !== "error")
      throw bridgeError(this.name, `answered ${type} with a message of type ${formatJson(reply.type ?? null)}.`);
    const { message = "no reason given", code = "no code", errors } = data;
    const details = errors === undefined ? "" : ` ${formatJson(errors, 500)}`;
    const text = `${formatJson(message, 1000)} (${formatJson(code)})${details}`;
    if (code === "VALIDATION_ERROR" && type === "step")
      throw new LlamaGymError("ENV_ACTION_INVALID", `${this.name} refused the action: ${text}`);
    throw bridgeError(this.name, `failed in ${type}: ${text}`);
  }

  private receive(data: RawData): void {
    const text = decodeMessage(data);
    const reply = asJsonObject(parseMessage(text));
    if (reply === undefined) this.fail(`sent an invalid message: ${excerpt(text)}`);
    else if (this.pending !== undefined) this.pending.resolve(reply);
    else this.fail(`sent an unexpected message: ${formatJson(asJsonObject(reply.data)?.message ?? text)}`);
  }
}

/** An OpenEnv server over plain HTTP, with one environment for all clients. */
export class OpenEnvHttpChannel implements Channel {
  readonly name: string;

  constructor(private readonly server: HttpServer) {
    this.name = server.name;
  }

  call(method: string, params: JsonObject): Promise<JsonValue> {
    return requestJson(this.server, `/${method}`, method === "step" ? { action: params } : params);
  }

  async close(): Promise<void> {}
}
