import type { JsonObject, JsonValue } from "../../../core/json.js";
import { randomUUID } from "node:crypto";
import type { TextInterface } from "../../text-interface.js";
import { bridgeError, type Channel, checkTimeoutMs } from "../channel.js";
import { createTextInterface, type TextInterfaceOptions } from "../create-text-interface.js";
import { readDescription } from "../remote-description.js";
import { RemoteEnv } from "../remote-env.js";
import { requestJson, sendRequest, parseServerUrl, type HttpServer } from "./http-client.js";

/** Protocol version in /spec. */
const PROTOCOL_VERSION = 1;
const CLOSE_TIMEOUT_MS = 2000;

export interface HttpEnvOptions extends TextInterfaceOptions {
  /** Request timeout in milliseconds. Default: one minute. */
  readonly timeout?: number;
  /** Headers of every request, such as Authorization. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Text interface. Default: a generic one. */
  readonly text?: TextInterface<unknown, unknown>;
}

/** An environment on a custom HTTP server: GET /spec, POST /reset, POST /step. */
export class HttpEnv extends RemoteEnv {
  /**
   * Connects to the server at `url` and reads /spec:
   * `{ protocol: 1, observationSpace, actionSpace }` and optionally `systemPrompt`, `actionNames`,
   * `renderModes`.
   * @throws ENV_FAILED when no server responds, or one with another protocol version; ENV_INVALID
   * for an invalid /spec
   */
  static async connect(url: string, options: HttpEnvOptions = {}): Promise<HttpEnv> {
    const server: HttpServer = {
      name: `The environment at ${url}`,
      url: parseServerUrl(url, ["http", "https"]).href.replace(/\/$/, ""),
      timeout: checkTimeoutMs("timeout", options.timeout),
      headers: options.headers,
    };
    const spec = readDescription(server.name, await requestJson(server, "/spec"), { protocol: PROTOCOL_VERSION });
    const { observationSpace, actionSpace, renderModes } = spec;
    return new HttpEnv(new HttpChannel(server), {
      observationSpace,
      actionSpace,
      metadata: { renderModes },
      text: options.text ?? createTextInterface(observationSpace, actionSpace, { ...spec, ...options }),
    });
  }
}

/**
 * Sends the session id with every request, so that a server can keep one environment per client.
 */
class HttpChannel implements Channel {
  readonly name: string;
  private readonly session = randomUUID();
  private queue: Promise<unknown> = Promise.resolve();
  private isClosed = false;

  constructor(private readonly server: HttpServer) {
    this.name = server.name;
  }

  call(method: string, params: JsonObject): Promise<JsonValue> {
    const result = this.queue.then(() => {
      if (this.isClosed) throw bridgeError(this.name, "was closed.");
      return requestJson(this.server, `/${method}`, { session: this.session, ...params });
    });
    this.queue = result.catch(() => {});
    return result;
  }

  /** A server without /close has nothing to release. */
  async close(): Promise<void> {
    if (this.isClosed) return;
    this.isClosed = true;
    const server = { ...this.server, timeout: Math.min(this.server.timeout, CLOSE_TIMEOUT_MS) };
    await sendRequest(server, "/close", { session: this.session }).catch(() => {});
  }
}
