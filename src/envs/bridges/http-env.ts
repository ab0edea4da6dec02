import { randomUUID } from "node:crypto";
import type { RenderMode } from "../env.js";
import type { JsonValue } from "../json.js";
import { spaceFromJson } from "../spaces/space-json.js";
import type { TextForm } from "../text-form.js";
import { asObject, bridgeFailed, type Channel, checkTimeout, type JsonObject } from "./channel.js";
import { genericText, type GenericTextOptions } from "./generic-text.js";
import { demand, request, serverUrl, type HttpServer } from "./http-client.js";
import { RemoteEnv } from "./remote-env.js";

/** The version of the protocol that a server of this kind states in /spec. */
const PROTOCOL = 1;

export interface HttpEnvOptions extends GenericTextOptions {
  /** Milliseconds that a request may take, a minute when not said. */
  readonly timeout?: number;
  /** Sent with each request, such as an Authorization. */
  readonly headers?: Readonly<Record<string, string>>;
  /** How the environment reads as text; a generic form when not said. */
  readonly text?: TextForm<unknown, unknown>;
}

/** An environment that a program of the user's serves over HTTP: GET /spec, POST /reset, POST /step. */
export class HttpEnv extends RemoteEnv {
  /**
   * Asks the server at `url` for its /spec: `{ protocol: 1, observationSpace, actionSpace }` and, where there are,
   * `systemPrompt`, `actionNames`, `renderModes`.
   * @throws ENV_FAILED when none answers, or one that speaks another version
   */
  static async connect(url: string, options: HttpEnvOptions = {}): Promise<HttpEnv> {
    const base = serverUrl(url, ["http", "https"]);
    const server: HttpServer = {
      name: `The environment at ${url}`,
      url: base.href.replace(/\/$/, ""),
      timeout: checkTimeout("timeout", options.timeout ?? 60_000),
      headers: options.headers,
    };
    const spec = asObject(await demand(server, "/spec")) ?? {};
    if (spec.protocol !== PROTOCOL) {
      throw bridgeFailed(
        server.name,
        `states protocol ${JSON.stringify(spec.protocol ?? null)} in /spec; this client speaks ${PROTOCOL}.`,
      );
    }
    const observationSpace = spaceFromJson(spec.observationSpace ?? null);
    const actionSpace = spaceFromJson(spec.actionSpace ?? null);
    const told = {
      systemPrompt: typeof spec.systemPrompt === "string" ? spec.systemPrompt : undefined,
      actionNames: Array.isArray(spec.actionNames) ? (spec.actionNames as readonly string[]) : undefined,
    };
    const modes = Array.isArray(spec.renderModes) ? (spec.renderModes as readonly RenderMode[]) : [];
    return new HttpEnv(new HttpChannel(server), {
      observationSpace,
      actionSpace,
      metadata: { renderModes: modes },
      text: options.text ?? genericText(observationSpace, actionSpace, { ...told, ...options }),
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
    const answer = this.queue.then(() => {
      if (this.isClosed) throw bridgeFailed(this.name, "was closed.");
      return demand(this.server, `/${method}`, { session: this.session, ...params });
    });
    this.queue = answer.catch(() => {});
    return answer;
  }

  /** A server without /close keeps nothing that would have to be closed. */
  async close(): Promise<void> {
    if (this.isClosed) return;
    this.isClosed = true;
    const server = { ...this.server, timeout: Math.min(this.server.timeout, 2000) };
    await request(server, "/close", { session: this.session }).catch(() => {});
  }
}
