import { randomUUID } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import type { JsonObject } from "../../../core/json.js";
import type { Env } from "../../env.js";
import { HttpError } from "../../../core/platform/node/http/http-error.js";
import { MAX_SESSION_IDLE_MS } from "../limits.js";
import type { HttpReply } from "../open-env/open-env-protocol.js";
import { OpenEnvSession } from "../open-env/open-env-session.js";
import type { EnvTools } from "./env-tools.js";
import { answerMcp, needsReply, PROTOCOL_VERSIONS } from "./mcp-protocol.js";

const SESSION_HEADER = "mcp-session-id";

interface McpSession {
  readonly session: OpenEnvSession;
  lastUse: number;
}

/**
 * MCP over streamable HTTP without streams: each client that initializes gets a session with its
 * own environment; clients without one, such as those of OpenEnv, share `sharedSession`.
 */
export class McpSessions {
  private readonly sessions = new Map<string, McpSession>();
  private opening = 0;

  constructor(
    private readonly tools: EnvTools,
    private readonly sharedSession: OpenEnvSession,
    private readonly createEnv: () => Promise<Env>,
    private readonly maxSessions: number,
  ) {}

  /**
   * Answers a message. @throws HttpError for an unknown session or protocol, and for one session
   * too many.
   */
  async post(message: JsonObject, headers: IncomingHttpHeaders): Promise<HttpReply> {
    const version = headers["mcp-protocol-version"];
    if (version !== undefined && !PROTOCOL_VERSIONS.includes(String(version)))
      throw new HttpError(400, `This MCP-Protocol-Version is not supported; ${PROTOCOL_VERSIONS.join(", ")} are.`);
    const isStart = message.method === "initialize" && headers[SESSION_HEADER] === undefined;
    const id = isStart ? await this.open() : headers[SESSION_HEADER];
    const open = id === undefined ? undefined : this.find(id);
    if (!needsReply(message)) return { status: 202 };
    const body = await answerMcp(this.tools, open?.session ?? this.sharedSession, message);
    if (open !== undefined) open.lastUse = performance.now();
    return { status: 200, body, headers: isStart ? { [SESSION_HEADER]: String(id) } : {} };
  }

  /** Ends a client's session. @throws HttpError for an unknown one. */
  async delete(headers: IncomingHttpHeaders): Promise<HttpReply> {
    const id = headers[SESSION_HEADER];
    const { session } = this.find(id);
    this.sessions.delete(String(id));
    await session.close();
    return { status: 204 };
  }

  async close(): Promise<void> {
    const sessions = [...this.sessions.values()];
    this.sessions.clear();
    await Promise.all(sessions.map(({ session }) => session.close()));
  }

  /** Returns a session as the one used last. */
  private find(header: string | readonly string[] | undefined): McpSession {
    const id = String(header);
    const found = this.sessions.get(id);
    // Clients initialize again after status 404.
    if (found === undefined) throw new HttpError(404, "There is no such session. Send initialize.");
    found.lastUse = performance.now();
    this.sessions.delete(id);
    this.sessions.set(id, found);
    return found;
  }

  /** Opens a session; if there is no room, in place of one that was not used for long. */
  private async open(): Promise<string> {
    const [oldest] = this.sessions;
    if (this.sessions.size + this.opening >= this.maxSessions) {
      if (oldest === undefined || performance.now() - oldest[1].lastUse < MAX_SESSION_IDLE_MS)
        throw new HttpError(503, "The server has reached its maximum number of sessions; try again later.");
      this.sessions.delete(oldest[0]);
      await oldest[1].session.close();
    }
    this.opening++;
    try {
      const session = new OpenEnvSession(await this.createEnv());
      const id = randomUUID();
      this.sessions.set(id, { session, lastUse: performance.now() });
      return id;
    } finally {
      this.opening--;
    }
  }
}
