import { randomUUID } from "node:crypto";
import type { RenderMode } from "../../env.js";
import type { JsonValue } from "../../../core/json.js";
import { spaceFromJson } from "../../spaces/space-json.js";
import type { TextInterface } from "../../text-interface.js";
import { asJsonObject, bridgeError, type Channel, checkTimeoutMs, type JsonObject } from "../channel.js";
import { createTextInterface, type TextInterfaceOptions } from "../create-text-interface.js";
import { requestJson, sendRequest, parseServerUrl, type HttpServer } from "./http-client.js";
import { RemoteEnv } from "../remote-env.js";

/** Protocol version in /spec. */
const PROTOCOL_VERSION = 1;

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
   * Connects to the server at `url` and reads /spec: `{ protocol: 1, observationSpace, actionSpace }` and optionally
   * `systemPrompt`, `actionNames`, `renderModes`.
   * @throws ENV_FAILED when no server responds, or one with another protocol version
   */
  static async connect(url: string, options: HttpEnvOptions = {}): Promise<HttpEnv> {
    const base = parseServerUrl(url, ["http", "https"]);
    const server: HttpServer = {
      name: `The environment at ${url}`,
      url: base.href.replace(/\/$/, ""),
      timeout: checkTimeoutMs("timeout", options.timeout ?? 60_000),
      headers: options.headers,
    };
    const spec = asJsonObject(await requestJson(server, "/spec")) ?? {};
    if (spec.protocol !== PROTOCOL_VERSION) {
      throw bridgeError(
        server.name,
        `states protocol ${JSON.stringify(spec.protocol ?? null)} in /spec; this client speaks ${PROTOCOL_VERSION}.`,
      );
    }
    const observationSpace = spaceFromJson(spec.observationSpace ?? null);
    const actionSpace = spaceFromJson(spec.actionSpace ?? null);
    const textOptions = {
      systemPrompt: typeof spec.systemPrompt === "string" ? spec.systemPrompt : undefined,
      actionNames: Array.isArray(spec.actionNames) ? (spec.actionNames as readonly string[]) : undefined,
    };
    const renderModes = Array.isArray(spec.renderModes) ? (spec.renderModes as readonly RenderMode[]) : [];
    return new HttpEnv(new HttpChannel(server), {
      observationSpace,
      actionSpace,
      metadata: { renderModes: renderModes },
      text: options.text ?? createTextInterface(observationSpace, actionSpace, { ...textOptions, ...options }),
    });
  }
}

/** Sends the session id with every request, so that a server can keep one environment per client. */
class HttpChannel implements Channel {
  private readonly session = randomUUID();
  private queue: Promise<unknown> = Promise.resolve();
  private isClosed = false;

  constructor(private readonly server: HttpServer) {}

  get name(): string {
    return this.server.name;
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
    const server = { ...this.server, timeout: Math.min(this.server.timeout, 2000) };
    await sendRequest(server, "/close", { session: this.session }).catch(() => {});
  }
}
