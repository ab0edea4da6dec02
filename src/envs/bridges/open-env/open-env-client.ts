import { LlamaGymError } from "../../../core/errors.js";
import type { JsonValue } from "../../../core/json.js";
import type { Space } from "../../spaces/space.js";
import { spaceFromJson } from "../../spaces/space-json.js";
import type { TextInterface } from "../../text-interface.js";
import { asJsonObject, bridgeError, type Channel, checkTimeoutMs, type JsonObject } from "../channel.js";
import type { TextInterfaceOptions } from "../create-text-interface.js";
import { sendRequest, parseServerUrl, type HttpServer } from "../http/http-client.js";
import { JsonSpace } from "../json-space.js";
import { OpenEnvHttpChannel, WebSocketChannel } from "./open-env-channel.js";
import { EXTENSION_KEY, EXTENSION_VERSION } from "./open-env-protocol.js";
import { createJsonTextInterface, createServedTextInterface } from "./open-env-text.js";
import { RemoteEnv } from "../remote-env.js";

export interface OpenEnvOptions extends TextInterfaceOptions {
  /** "ws" (default): a separate session. "http": for old servers, with one environment for all clients. */
  readonly transport?: "ws" | "http";
  /** Call timeout in milliseconds. Default: one minute. */
  readonly timeout?: number;
  /** Connection timeout in milliseconds. Default: 10,000. */
  readonly connectTimeout?: number;
  /** Headers of every request, such as Authorization. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Text interface. Default: one derived from the schema. */
  readonly text?: TextInterface<unknown, unknown>;
}

/**
 * An environment on an OpenEnv server. llamagym's servers provide the environment's spaces; for others the spaces
 * are JSON values that match the server's schema, such as { "message": "hello" }.
 */
export class OpenEnvClient extends RemoteEnv {
  /**
   * Connects to the server at `url`, such as http://127.0.0.1:8000.
   * @throws ENV_FAILED when no server responds, or one with another protocol version
   */
  static async connect(url: string, options: OpenEnvOptions = {}): Promise<OpenEnvClient> {
    const base = parseServerUrl(url, ["http", "https", "ws", "wss"]);
    const timeout = checkTimeoutMs("timeout", options.timeout ?? 60_000);
    const connectTimeout = checkTimeoutMs("connectTimeout", options.connectTimeout ?? 10_000);
    const isSecure = ["https:", "wss:"].includes(base.protocol);
    const rest = base.href.slice(base.protocol.length).replace(/\/$/, "");
    const { headers, transport = "ws" } = options;
    const server: HttpServer = {
      name: `The OpenEnv server ${url}`,
      url: `http${isSecure ? "s" : ""}:${rest}`,
      timeout,
      headers,
    };
    const schema = await fetchSchema({ ...server, timeout: connectTimeout });
    const description = describeRemoteEnv(server.name, schema, options);
    const channel =
      transport === "http"
        ? new OpenEnvHttpChannel(server)
        : await WebSocketChannel.connect({ ...server, url: `ws${isSecure ? "s" : ""}:${rest}/ws` }, connectTimeout);
    return new OpenEnvClient(new OpenEnvMessages(channel, description.isLlamaGymServer), {
      ...description,
      metadata: { renderModes: [] },
    });
  }
}

async function fetchSchema(server: HttpServer): Promise<{ action: JsonObject; observation: JsonObject }> {
  const { status, json } = await sendRequest(server, "/schema");
  const { action, observation } = asJsonObject(json) ?? {};
  const schemas = { action: asJsonObject(action), observation: asJsonObject(observation) };
  if (status === 200 && schemas.action !== undefined && schemas.observation !== undefined) {
    return schemas as { action: JsonObject; observation: JsonObject };
  }
  throw bridgeError(
    server.name,
    `gave no schema of actions and observations at ${server.url}/schema (status ${status}): it is no OpenEnv server, or of a version before 0.2.`,
  );
}

interface OpenEnvDescription {
  readonly isLlamaGymServer: boolean;
  readonly observationSpace: Space;
  readonly actionSpace: Space;
  readonly text: TextInterface<unknown, unknown> | undefined;
}

function describeRemoteEnv(
  name: string,
  schema: { action: JsonObject; observation: JsonObject },
  options: OpenEnvOptions,
): OpenEnvDescription {
  const extension = asJsonObject(schema.action[EXTENSION_KEY]);
  if (extension === undefined) {
    const actionSpace = new JsonSpace(schema.action);
    const text = options.text ?? createJsonTextInterface(actionSpace, options);
    return { isLlamaGymServer: false, observationSpace: new JsonSpace({}), actionSpace, text };
  }
  if (extension.protocol !== EXTENSION_VERSION) {
    throw bridgeError(
      name,
      `is a llamagym server of another version: it speaks protocol ${JSON.stringify(extension.protocol)}, this client ${EXTENSION_VERSION}. Install the same llamagym at both ends.`,
    );
  }
  const observationSpace = spaceFromJson(extension.observationSpace);
  const actionSpace = spaceFromJson(extension.actionSpace);
  return {
    isLlamaGymServer: true,
    observationSpace,
    actionSpace,
    text: options.text ?? createServedTextInterface(observationSpace, actionSpace, extension, options),
  };
}

/** Translates calls and results between an environment and OpenEnv. */
class OpenEnvMessages implements Channel {
  constructor(
    private readonly channel: Channel,
    private readonly isLlamaGymServer: boolean,
  ) {}

  get name(): string {
    return this.channel.name;
  }

  async call(method: string, params: JsonObject): Promise<JsonValue> {
    if (method === "reset") {
      const { seed, options } = params;
      const data = { ...asJsonObject(options), ...(seed === undefined ? {} : { seed: Number(seed) }) };
      return this.readResult(method, await this.channel.call("reset", data));
    }
    const { action } = params;
    const data = this.isLlamaGymServer ? { action } : asJsonObject(action);
    if (data === undefined) {
      throw new LlamaGymError(
        "ENV_ACTION_INVALID",
        `${this.name} takes objects as actions, got ${JSON.stringify(action)}.`,
      );
    }
    return this.readResult(method, await this.channel.call("step", data));
  }

  close(): Promise<void> {
    return this.channel.close();
  }

  private readResult(method: string, json: JsonValue): JsonValue {
    const { observation, reward, done } = asJsonObject(json) ?? {};
    const fields = asJsonObject(observation);
    if (fields === undefined || (done !== undefined && typeof done !== "boolean")) {
      throw bridgeError(
        this.name,
        `answered ${method} without an observation and whether it is done: it speaks another version.`,
      );
    }
    const common = { reward: reward ?? 0, terminated: done ?? false, truncated: false };
    if (!this.isLlamaGymServer) return { ...common, observation: fields, info: {} };
    const { info, text, choices, terminated, truncated } = fields;
    const infoFields = {
      ...asJsonObject(info),
      ...(text === undefined ? {} : { text }),
      ...(choices === undefined ? {} : { choices }),
    };
    return { ...common, observation: fields.observation, info: infoFields, terminated, truncated };
  }
}
