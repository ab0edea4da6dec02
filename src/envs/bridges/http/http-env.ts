import { randomUUID } from "node:crypto";
import type { RenderMode } from "../../env.js";
import type { JsonValue } from "../../../core/json.js";
import { spaceFromJson } from "../../spaces/space-json.js";
import type { TextInterface } from "../../text-interface.js";
import { asJsonObject, bridgeError, type Channel, checkTimeoutMs, type JsonObject } from "../channel.js";
import { createTextInterface, type TextInterfaceOptions } from "../create-text-interface.js";
import { requestJson, sendRequest, parseServerUrl, type HttpServer } from "./http-client.js";
import { RemoteEnv } from "../remote-env.js";

/** The version of the protocol that a server of this kind states in /spec. */
const PROTOCOL_VERSION = 1;

export interface HttpEnvOptions extends TextInterfaceOptions {
  /** Milliseconds that a request may take, a minute when not said. */
  readonly timeout?: number;
  /** Sent with each request, such as an Authorization. */
  readonly headers?: Readonly<Record<string, string>>;
  /** How the environment reads as text; a generic form when not said. */
  readonly text?: TextInterface<unknown, unknown>;
}

/** An environment that a program of the user's serves over HTTP: GET /spec, POST /reset, POST /step. */
export class HttpEnv extends RemoteEnv {
  /**
   * Asks the server at `url` for its /spec: `{ protocol: 1, observationSpace, actionSpace }` and, where there are,
   * `systemPrompt`, `actionNames`, `renderModes`.
   * @throws ENV_FAILED when none answers, or one that speaks another version
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

/** Requests that name their session, so that a server may keep an environment for each client. */
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

  /** A server without /close keeps nothing that would have to be closed. */
  async close(): Promise<void> {
    if (this.isClosed) return;
    this.isClosed = true;
    const server = { ...this.server, timeout: Math.min(this.server.timeout, 2000) };
    await sendRequest(server, "/close", { session: this.session }).catch(() => {});
  }
}
