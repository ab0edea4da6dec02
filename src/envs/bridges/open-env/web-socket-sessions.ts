import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { type RawData, type WebSocket, WebSocketServer } from "ws";
import { type JsonObject, asJsonObject } from "../../../core/json.js";
import { REQUEST_TIMEOUT_MS } from "../../../core/platform/node/http/listen.js";
import { printWarning } from "../../../core/terminal-text.js";
import { ReceivingMessage } from "../../../core/platform/node/http/receiving-message.js";
import type { Env } from "../../env.js";
import { formatJson, parseMessage } from "../channel.js";
import { MAX_MESSAGE_BYTES, MAX_SESSION_IDLE_MS } from "../limits.js";
import { decodeMessage, errorReply, isClientError } from "./open-env-protocol.js";
import { OpenEnvSession } from "./open-env-session.js";

/**
 * Messages of a client that wait for its environment; more are not read from its connection until
 * then.
 */
const MAX_PENDING_MESSAGES = 100;

/** Bytes of replies that a client has not read, before its connection ends: two of the longest. */
const MAX_UNREAD_BYTES = 2 * MAX_MESSAGE_BYTES;

/** Bytes of a client's ping or pong before its data. */
const CONTROL_HEADER_BYTES = 6;

/**
 * OpenEnv's sessions over WebSocket. A client gets its environment, and counts as a session, when
 * its first message has arrived: idle connections keep no client out.
 */
export class WebSocketSessions {
  private readonly server = new WebSocketServer({ noServer: true, maxPayload: MAX_MESSAGE_BYTES });
  /**
   * Clients with an environment and when they were last used, from the least to the most recently
   * used.
   */
  private readonly lastUses = new Map<WebSocket, number>();

  constructor(
    private readonly createEnv: () => Promise<Env>,
    private readonly maxSessions: number,
  ) {}

  /** Accepts a connection. */
  accept(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    this.server.handleUpgrade(request, socket, head, (client) => {
      client.on("error", () => {});
      limitUnfinishedMessages(client, socket);
      this.serve(client);
    });
  }

  /** Ends all connections. */
  close(): void {
    for (const client of this.server.clients) client.terminate();
  }

  private serve(client: WebSocket): void {
    const send = (message: JsonObject) => {
      if (client.readyState !== client.OPEN) return;
      if (client.bufferedAmount > MAX_UNREAD_BYTES) client.terminate();
      else client.send(JSON.stringify(message));
    };
    const refuse = (problem: JsonObject) => {
      this.lastUses.delete(client);
      send(problem);
      client.close();
    };
    let session: Promise<OpenEnvSession | undefined> | undefined;
    let pending = 0;
    let answered = Promise.resolve();
    const receive = async (data: RawData) => {
      if (++pending >= MAX_PENDING_MESSAGES) client.pause();
      // One after another, because replies have no id.
      answered = answered.then(async () => answer(data));
      await answered;
      if (--pending < MAX_PENDING_MESSAGES && client.isPaused) client.resume();
    };
    const answer = async (data: RawData) => {
      session ??= this.open(client, refuse);
      const opened = await session;
      if (opened === undefined) return;
      this.touch(client);
      const reply = await handleMessage(opened, decodeMessage(data));
      if (reply === "close") client.close();
      else send(reply);
    };
    client.on("message", (data) => void receive(data));
    client.once("close", () => {
      this.lastUses.delete(client);
      // The client is gone, so an error of its environment's close() goes to the server's log.
      session?.then((opened) => opened?.close()).catch((error: unknown) => printWarning(String(error)));
    });
  }

  /**
   * Opens a session, if there is no room in place of one that was not used for long; undefined
   * after a refusal.
   */
  private async open(client: WebSocket, refuse: (problem: JsonObject) => void): Promise<OpenEnvSession | undefined> {
    const [oldest] = this.lastUses;
    if (this.lastUses.size >= this.maxSessions) {
      if (oldest === undefined || performance.now() - oldest[1] < MAX_SESSION_IDLE_MS) {
        refuse(
          errorReply("The server has reached its maximum number of sessions; try again later.", "CAPACITY_REACHED"),
        );
        return undefined;
      }
      this.lastUses.delete(oldest[0]);
      oldest[0].close();
    }
    this.touch(client);
    try {
      return new OpenEnvSession(await this.createEnv());
    } catch (error) {
      refuse(errorReply((error as Error).message, "FACTORY_ERROR"));
      return undefined;
    }
  }

  private touch(client: WebSocket): void {
    if (client.readyState !== client.OPEN) return;
    this.lastUses.delete(client);
    this.lastUses.set(client, performance.now());
  }
}

/** Ends connections whose message does not arrive in time, or takes memory that others need. */
function limitUnfinishedMessages(client: WebSocket, socket: Duplex): void {
  let timer: NodeJS.Timeout | undefined;
  const receiving = new ReceivingMessage(() => client.terminate());
  const watch = () => {
    if (receiving.isUnfinished) timer ??= setTimeout(() => client.terminate(), REQUEST_TIMEOUT_MS).unref();
    else {
      clearTimeout(timer);
      timer = undefined;
    }
  };
  // Before the reader of the socket, so that a message is finished after its last part is counted.
  socket.prependListener("data", (part: Buffer) => {
    receiving.add(part.length);
    watch();
  });
  const finish = () => {
    receiving.finish();
    watch();
  };
  const removeControl = (data: Buffer) => {
    receiving.remove(CONTROL_HEADER_BYTES + data.length);
    watch();
  };
  client.on("message", finish).once("close", finish).on("ping", removeControl).on("pong", removeControl);
}

async function handleMessage(session: OpenEnvSession, text: string): Promise<JsonObject | "close"> {
  const json = parseMessage(text);
  if (json === undefined) return errorReply("The message is not JSON, or nested too deep.", "INVALID_JSON");
  const { type, data = {} } = asJsonObject(json) ?? {};
  if (type === "state") return { type: "state", data: session.state };
  if (type === "close") return "close";
  if (type !== "reset" && type !== "step") {
    const known = "Known: reset, step, state, close.";
    return errorReply(`Unknown message type: ${formatJson(type)}. ${known}`, "UNKNOWN_TYPE");
  }
  const fields = asJsonObject(data);
  if (fields === undefined) return errorReply(`The data of ${type} must be an object.`, "VALIDATION_ERROR");
  try {
    return { type: "observation", data: await session[type](fields) };
  } catch (error) {
    return errorReply((error as Error).message, isClientError(error) ? "VALIDATION_ERROR" : "EXECUTION_ERROR");
  }
}
