import { LlamaGymError } from "../../errors.js";
import type { JsonValue } from "../json.js";
import type { Space } from "../spaces/space.js";
import { spaceFromJson } from "../spaces/space-json.js";
import type { TextForm } from "../text-form.js";
import { asObject, bridgeFailed, type Channel, checkTimeout, type JsonObject } from "./channel.js";
import type { GenericTextOptions } from "./generic-text.js";
import { request, serverUrl, type HttpServer } from "./http-client.js";
import { JsonSpace } from "./json-space.js";
import { HttpOpenEnvChannel, WebSocketChannel } from "./open-env-channel.js";
import { EXTENSION, EXTENSION_PROTOCOL } from "./open-env-protocol.js";
import { jsonText, servedText } from "./open-env-text.js";
import { RemoteEnv } from "./remote-env.js";

export interface OpenEnvOptions extends GenericTextOptions {
  /** "ws", a session of one's own, when not said. "http" is for old servers: their one environment is everybody's. */
  readonly transport?: "ws" | "http";
  /** Milliseconds that a call may take, a minute when not said. */
  readonly timeout?: number;
  /** Milliseconds until the server must have answered at all, 10,000 when not said. */
  readonly connectTimeout?: number;
  /** Sent with each request, such as an Authorization. */
  readonly headers?: Readonly<Record<string, string>>;
  /** How the environment reads as text; a form that follows from its schema when not said. */
  readonly text?: TextForm<unknown, unknown>;
}

/**
 * An environment on an OpenEnv server. Of llamagym's own servers it has the environment's spaces; of others the spaces
 * are JSON values by the server's schema: actions such as { "message": "hello" }.
 */
export class OpenEnvClient extends RemoteEnv {
  /**
   * Connects to the server at `url`, such as http://127.0.0.1:8000.
   * @throws ENV_FAILED when none answers there, or one that speaks another version
   */
  static async connect(url: string, options: OpenEnvOptions = {}): Promise<OpenEnvClient> {
    const base = serverUrl(url, ["http", "https", "ws", "wss"]);
    const timeout = checkTimeout("timeout", options.timeout ?? 60_000);
    const connectTimeout = checkTimeout("connectTimeout", options.connectTimeout ?? 10_000);
    const isSecure = ["https:", "wss:"].includes(base.protocol);
    const rest = base.href.slice(base.protocol.length).replace(/\/$/, "");
    const { headers, transport = "ws" } = options;
    const server: HttpServer = {
      name: `The OpenEnv server ${url}`,
      url: `http${isSecure ? "s" : ""}:${rest}`,
      timeout,
      headers,
    };
    const schema = await readSchema({ ...server, timeout: connectTimeout });
    const described = describe(server.name, schema, options);
    const channel =
      transport === "http"
        ? new HttpOpenEnvChannel(server)
        : await WebSocketChannel.connect({ ...server, url: `ws${isSecure ? "s" : ""}:${rest}/ws` }, connectTimeout);
    return new OpenEnvClient(new OpenEnvWords(channel, described.isOurs), {
      ...described,
      metadata: { renderModes: [] },
    });
  }
}

async function readSchema(server: HttpServer): Promise<{ action: JsonObject; observation: JsonObject }> {
  const { status, json } = await request(server, "/schema");
  const { action, observation } = asObject(json) ?? {};
  const schemas = { action: asObject(action), observation: asObject(observation) };
  if (status === 200 && schemas.action !== undefined && schemas.observation !== undefined) {
    return schemas as { action: JsonObject; observation: JsonObject };
  }
  throw bridgeFailed(
    server.name,
    `gave no schema of actions and observations at ${server.url}/schema (status ${status}): it is no OpenEnv server, or of a version before 0.2.`,
  );
}

interface Described {
  readonly isOurs: boolean;
  readonly observationSpace: Space;
  readonly actionSpace: Space;
  readonly text: TextForm<unknown, unknown> | undefined;
}

function describe(
  name: string,
  schema: { action: JsonObject; observation: JsonObject },
  options: OpenEnvOptions,
): Described {
  const extension = asObject(schema.action[EXTENSION]);
  if (extension === undefined) {
    const actionSpace = new JsonSpace(schema.action);
    const text = options.text ?? jsonText(actionSpace, options);
    return { isOurs: false, observationSpace: new JsonSpace({}), actionSpace, text };
  }
  if (extension.protocol !== EXTENSION_PROTOCOL) {
    throw bridgeFailed(
      name,
      `is a llamagym server of another version: it speaks protocol ${JSON.stringify(extension.protocol)}, this client ${EXTENSION_PROTOCOL}. Install the same llamagym at both ends.`,
    );
  }
  const observationSpace = spaceFromJson(extension.observationSpace);
  const actionSpace = spaceFromJson(extension.actionSpace);
  return {
    isOurs: true,
    observationSpace,
    actionSpace,
    text: options.text ?? servedText(observationSpace, actionSpace, extension, options),
  };
}

/** Puts calls of an environment into OpenEnv's words, and its answers into an environment's. */
class OpenEnvWords implements Channel {
  constructor(
    private readonly channel: Channel,
    private readonly isOurs: boolean,
  ) {}

  get name(): string {
    return this.channel.name;
  }

  async call(method: string, params: JsonObject): Promise<JsonValue> {
    if (method === "reset") {
      const { seed, options } = params;
      const data = { ...asObject(options), ...(seed === undefined ? {} : { seed: Number(seed) }) };
      return this.read(method, await this.channel.call("reset", data));
    }
    const { action } = params;
    const data = this.isOurs ? { action } : asObject(action);
    if (data === undefined) {
      throw new LlamaGymError(
        "ENV_ACTION_INVALID",
        `${this.name} takes objects as actions, got ${JSON.stringify(action)}.`,
      );
    }
    return this.read(method, await this.channel.call("step", data));
  }

  close(): Promise<void> {
    return this.channel.close();
  }

  private read(method: string, json: JsonValue): JsonValue {
    const { observation, reward, done } = asObject(json) ?? {};
    const fields = asObject(observation);
    if (fields === undefined || (done !== undefined && typeof done !== "boolean")) {
      throw bridgeFailed(
        this.name,
        `answered ${method} without an observation and whether it is done: it speaks another version.`,
      );
    }
    const shared = { reward: reward ?? 0, terminated: done ?? false, truncated: false };
    if (!this.isOurs) return { ...shared, observation: fields, info: {} };
    const { info, text, choices, terminated, truncated } = fields;
    const told = {
      ...asObject(info),
      ...(text === undefined ? {} : { text }),
      ...(choices === undefined ? {} : { choices }),
    };
    return { ...shared, observation: fields.observation, info: told, terminated, truncated };
  }
}
