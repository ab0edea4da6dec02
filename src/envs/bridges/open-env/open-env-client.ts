import { type JsonObject, type JsonValue, asJsonObject } from "../../../core/json.js";
import { invalidArgument, invalidEnv, LlamaGymError } from "../../../core/errors.js";
import type { Env } from "../../env.js";
import type { GameOptions } from "../../games/as-env.js";
import type { TextInterface } from "../../text-interface.js";
import { bridgeError, type Channel, checkTimeoutMs, formatJson } from "../channel.js";
import type { TextInterfaceOptions } from "../create-text-interface.js";
import { sendRequest, parseServerUrl, type HttpServer } from "../http/http-client.js";
import { JsonSpace } from "../json-space.js";
import { MAX_SCHEMA_LENGTH } from "../limits.js";
import { readDescription } from "../remote-description.js";
import { RemoteEnv, type RemoteEnvDescription } from "../remote-env.js";
import { OpenEnvHttpChannel, WebSocketChannel } from "./open-env-channel.js";
import { OpenEnvGame, openGame, PLAYERS_FIELD, readPlayers } from "./open-env-game.js";
import { EXTENSION_KEY, EXTENSION_VERSION } from "./open-env-protocol.js";
import { createJsonTextInterface, createServedTextInterface } from "./open-env-text.js";

export interface OpenEnvOptions extends TextInterfaceOptions {
  /**
   * "ws" (default): a separate session. "http": for old servers, with one environment for all
   * clients.
   */
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
 * An environment on an OpenEnv server. llamagym's servers provide the environment's spaces; for
 * others the spaces are JSON values that match the server's schema, such as { "message": "hello" }.
 */
export class OpenEnvClient extends RemoteEnv {
  /**
   * Connects to the server at `url`, such as http://127.0.0.1:8000.
   * @throws ENV_FAILED when no server responds, or one with another protocol version; ENV_INVALID
   * for an invalid schema
   */
  static async connect(url: string, options: OpenEnvOptions = {}): Promise<OpenEnvClient> {
    const { channel, description, isLlamaGymServer } = await openSession(url, options);
    return new OpenEnvClient(new OpenEnvMessages(channel, isLlamaGymServer), description);
  }

  /**
   * Connects to the server at `url`: to an environment, or to a game whose client moves for all
   * players, in which an opponent moves for all but one.
   * @throws what `connect` throws, and INVALID_ARGUMENT for an opponent that the game does not have
   */
  static async open(url: string, { opponent, seat, ...options }: OpenEnvOptions & GameOptions = {}): Promise<Env> {
    const { channel, description, isLlamaGymServer, hasPlayers } = await openSession(url, options);
    const isGiven = opponent !== undefined || seat !== undefined;
    try {
      if (hasPlayers && options.transport !== "http") {
        const players = readPlayers(asJsonObject(await channel.call("reset", {}))?.observation);
        if (players !== undefined) return openGame(new OpenEnvGame(channel, description, players), { opponent, seat });
      }
      if (isGiven) throw invalidArgument(`${channel.name} has no players to choose: leave opponent and seat out.`);
    } catch (error) {
      await channel.close();
      throw error;
    }
    return new OpenEnvClient(new OpenEnvMessages(channel, isLlamaGymServer), description);
  }
}

interface Session {
  readonly channel: Channel;
  readonly description: RemoteEnvDescription;
  readonly isLlamaGymServer: boolean;
  /** Whether observations may name several players. */
  readonly hasPlayers: boolean;
}

async function openSession(url: string, options: OpenEnvOptions): Promise<Session> {
  const base = parseServerUrl(url, ["http", "https", "ws", "wss"]);
  const timeout = checkTimeoutMs("timeout", options.timeout);
  const connectTimeout = checkTimeoutMs("connectTimeout", options.connectTimeout ?? 10_000);
  const secure = ["https:", "wss:"].includes(base.protocol) ? "s" : "";
  const rest = base.href.slice(base.protocol.length).replace(/\/$/, "");
  const { headers, transport = "ws" } = options;
  const server: HttpServer = { name: `The OpenEnv server ${url}`, url: `http${secure}:${rest}`, timeout, headers };
  const { action, observation } = await fetchSchemas({ ...server, timeout: connectTimeout });
  const isLlamaGymServer = EXTENSION_KEY in action;
  const describe = isLlamaGymServer ? describeServedEnv : describeForeignEnv;
  const description = describe(server.name, action, options);
  const hasPlayers = !isLlamaGymServer && asJsonObject(observation.properties)?.[PLAYERS_FIELD] !== undefined;
  const channel =
    transport === "http"
      ? new OpenEnvHttpChannel(server)
      : await WebSocketChannel.connect({ ...server, url: `ws${secure}:${rest}/ws` }, connectTimeout);
  return { channel, description, isLlamaGymServer, hasPlayers };
}

async function fetchSchemas(server: HttpServer): Promise<{ action: JsonObject; observation: JsonObject }> {
  const { status, json } = await sendRequest(server, "/schema");
  const schemas = asJsonObject(json) ?? {};
  const [action, observation] = [asJsonObject(schemas.action), asJsonObject(schemas.observation)];
  if (status === 200 && action !== undefined && observation !== undefined) return { action, observation };
  throw bridgeError(
    server.name,
    `gave no schema of actions and observations at ${server.url}/schema (status ${status}). It is not an OpenEnv server, or of a version before 0.2.`,
  );
}

function describeServedEnv(name: string, schema: JsonObject, options: OpenEnvOptions): RemoteEnvDescription {
  const description = readDescription(name, schema[EXTENSION_KEY], { protocol: EXTENSION_VERSION });
  const { observationSpace, actionSpace } = description;
  const text = options.text ?? createServedTextInterface(observationSpace, actionSpace, { ...description, ...options });
  return { observationSpace, actionSpace, metadata: { renderModes: [] }, text };
}

function describeForeignEnv(name: string, schema: JsonObject, options: OpenEnvOptions): RemoteEnvDescription {
  const { length } = JSON.stringify(schema);
  if (length > MAX_SCHEMA_LENGTH) {
    const problem = `sent an action schema of ${length} characters, at most ${MAX_SCHEMA_LENGTH} are allowed.`;
    throw invalidEnv(`${name} ${problem}`);
  }
  const actionSpace = new JsonSpace(schema);
  const text = options.text ?? createJsonTextInterface(actionSpace, options);
  return { observationSpace: new JsonSpace({}), actionSpace, metadata: { renderModes: [] }, text };
}

/** Translates calls and results between an environment and OpenEnv. */
class OpenEnvMessages implements Channel {
  readonly name: string;

  constructor(
    private readonly channel: Channel,
    private readonly isLlamaGymServer: boolean,
  ) {
    this.name = channel.name;
  }

  async call(method: string, { seed, options, action }: JsonObject): Promise<JsonValue> {
    if (method === "reset") {
      const data = { ...asJsonObject(options), ...(seed === undefined ? {} : { seed: Number(seed) }) };
      return this.readResult(method, await this.channel.call("reset", data));
    }
    const data = this.isLlamaGymServer ? { action } : asJsonObject(action);
    if (data === undefined)
      throw new LlamaGymError(
        "ENV_ACTION_INVALID",
        `${this.name} takes objects as actions, got ${formatJson(action)}.`,
      );
    return this.readResult(method, await this.channel.call("step", data));
  }

  close(): Promise<void> {
    return this.channel.close();
  }

  private readResult(method: string, json: JsonValue): JsonValue {
    const { observation, reward, done } = asJsonObject(json) ?? {};
    const fields = asJsonObject(observation);
    if (fields === undefined || (done !== undefined && typeof done !== "boolean"))
      throw bridgeError(this.name, `answered ${method} without an object as observation or a boolean as done.`);
    const players = this.isLlamaGymServer ? undefined : readPlayers(fields);
    if (players !== undefined)
      throw invalidEnv(
        `${this.name} has a game of ${players.length} players, for all of whom its client moves. Open it as a game, over WebSocket: openEnv("openenv:URL").`,
      );
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
