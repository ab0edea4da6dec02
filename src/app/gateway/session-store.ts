import { randomUUID } from "node:crypto";
import { errorMessage } from "../../core/errors.js";
import { RequestError } from "../server/request-error.js";
import { GatewaySession, type SessionContext, type SessionRecord } from "./session.js";

/** Sessions open at the same time: each keeps the tokens of its conversation. */
const MAX_OPEN_SESSIONS = 4096;
/** Ended sessions whose ids are remembered, to answer calls after the end. */
const MAX_ENDED_SESSIONS = 10_000;
/** How often sessions are checked for their timeout. */
const SWEEP_INTERVAL_MS = 1000;

export interface SessionStoreOptions extends SessionContext {
  /** Milliseconds without a call after which a session ends as truncated. */
  readonly sessionTimeoutMs: number;
  /** Receives the sessions that ended; without a completion, there is no record. */
  readonly onEnd: (session: GatewaySession, record: SessionRecord | undefined) => void;
  /** Receives errors of sessions that ended by their timeout. */
  readonly onWarning?: (message: string) => void;
}

/** The sessions of a gateway by id. */
export class SessionStore {
  /** Number of sessions opened so far, those of a resumed run included. */
  count = 0;
  /** Ended sessions without completions; they are not trained. */
  emptySessions = 0;
  /**
   * Greedy completions of the evaluation that runs, if one does: new sessions then belong to it.
   */
  greedy: SessionContext["greedy"];
  private readonly open = new Map<string, GatewaySession>();
  private readonly ended = new Set<string>();
  private readonly sweep: NodeJS.Timeout;

  constructor(private readonly options: SessionStoreOptions) {
    this.sweep = setInterval(() => this.endIdle(), SWEEP_INTERVAL_MS).unref();
  }

  /** @throws RequestError 429 if too many sessions are open. */
  create(task?: string, index = this.count): GatewaySession {
    if (this.open.size >= MAX_OPEN_SESSIONS)
      throw new RequestError(429, `${MAX_OPEN_SESSIONS} sessions are open. End some of them first.`);
    this.count++;
    const session = new GatewaySession(randomUUID(), index, { ...this.options, greedy: this.greedy }, task);
    this.open.set(session.id, session);
    return session;
  }

  /** @throws RequestError 404 for an unknown id, 409 for a session that has ended. */
  get(id: string): GatewaySession {
    const session = this.open.get(id);
    if (session !== undefined) return session;
    if (this.ended.has(id))
      throw new RequestError(409, `Session ${id} has ended. Open another one with POST /sessions.`, {
        code: "session_ended",
      });
    throw new RequestError(404, `There is no session ${id}. Open one with POST /sessions.`, {
      code: "session_not_found",
    });
  }

  /** Ends a session and hands it on. @throws as `get` and `Session.finish`. */
  async end(id: string, end: "terminated" | "truncated" = "terminated"): Promise<SessionRecord | undefined> {
    const session = this.get(id);
    session.end(end);
    this.open.delete(id);
    this.ended.add(id);
    if (this.ended.size > MAX_ENDED_SESSIONS) this.ended.delete(this.ended.values().next().value!);
    const record = await session.finish();
    if (record === undefined && !session.isGreedy) this.emptySessions++;
    this.options.onEnd(session, record);
    return record;
  }

  close(): void {
    clearInterval(this.sweep);
    this.open.clear();
  }

  private endIdle(): void {
    for (const session of this.open.values())
      if (session.idleMs > this.options.sessionTimeoutMs)
        void this.end(session.id, "truncated").catch((error: unknown) => this.options.onWarning?.(errorMessage(error)));
  }
}
