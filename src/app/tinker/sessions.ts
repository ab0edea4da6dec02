import { RequestError } from "../server/request-error.js";
import type { AdapterForm } from "./checkpoint-store.js";
import type { OrderedRequests } from "./ordered-requests.js";
import type { PolicySnapshot } from "./snapshots.js";
import type { TrainedModel } from "./trained-model.js";

/** A model that is trained. */
export interface TrainedModelEntry {
  readonly id: string;
  readonly session: TinkerSession;
  readonly form: AdapterForm;
  readonly userMetadata: Readonly<Record<string, unknown>> | null | undefined;
  readonly trained: Promise<TrainedModel>;
  readonly requests: OrderedRequests;
  lastRequest: Date;
}

/** A sampling session: what is sampled from. */
export interface SamplingSession {
  readonly id: string;
  readonly session: TinkerSession;
  /** Undefined for the base model. */
  snapshot: PolicySnapshot | undefined;
  /**
   * The model whose last snapshot is sampled from, whatever was sampled from before; undefined for
   * a fixed snapshot.
   */
  readonly inflightOf: string | undefined;
  /** Path of the checkpoint; undefined without one. */
  readonly path: string | undefined;
  /** Clients that have joined. */
  clients: number;
}

/** A client's session. */
export interface TinkerSession {
  readonly id: string;
  readonly models: Map<string, TrainedModelEntry>;
  readonly sampling: Map<string, SamplingSession>;
  lastSeen: number;
}

const DEFAULT_TIMEOUT_MS = 300_000;
const CHECK_MS = 5000;
const MAX_SESSIONS = 1024;
/**
 * Ended sessions that are remembered, so that their clients get another answer than those of
 * unknown ones.
 */
const MAX_ENDED = 4096;

/**
 * The sessions of clients. One whose client gives no sign of life ends, and what it holds is freed.
 */
export class Sessions {
  private readonly sessions = new Map<string, TinkerSession>();
  private readonly ended = new Set<string>();
  /** Sessions by the key of the request that created them. */
  private readonly byRequest = new Map<string, string>();
  private readonly timer: NodeJS.Timeout;

  constructor(
    private readonly timeoutMs = DEFAULT_TIMEOUT_MS,
    private readonly onEnd: (session: TinkerSession) => Promise<void>,
  ) {
    this.timer = setInterval(() => this.endStale(), Math.min(CHECK_MS, timeoutMs));
    this.timer.unref();
  }

  /** Number of models of all sessions. */
  get modelCount(): number {
    return [...this.sessions.values()].reduce((sum, { models }) => sum + models.size, 0);
  }

  get models(): TrainedModelEntry[] {
    return [...this.sessions.values()].flatMap(({ models }) => [...models.values()]);
  }

  /** Creates a session; a request that is repeated gets the same one. @throws RequestError 429 */
  create(requestKey: string | undefined): TinkerSession {
    const known = requestKey && this.sessions.get(this.byRequest.get(requestKey) ?? "");
    if (known) return known;
    if (this.sessions.size >= MAX_SESSIONS)
      throw new RequestError(429, `The server has ${MAX_SESSIONS} sessions already. Try again later.`, {
        retryAfter: 5,
      });
    const session = { id: crypto.randomUUID(), models: new Map(), sampling: new Map(), lastSeen: Date.now() };
    this.sessions.set(session.id, session);
    if (requestKey !== undefined) {
      if (this.byRequest.size >= MAX_ENDED) this.byRequest.clear();
      this.byRequest.set(requestKey, session.id);
    }
    return session;
  }

  /**
   * Finds a session and notes the sign of life. @throws RequestError 410 for one that has ended,
   * 404 for an unknown one.
   */
  get(id: string): TinkerSession {
    const session = this.sessions.get(id);
    if (session === undefined) {
      if (this.ended.has(id)) throw new RequestError(410, `The session ${id} has ended.`);
      throw new RequestError(
        404,
        `There is no session ${id.slice(0, 100)}. It may belong to an earlier start of the server.`,
      );
    }
    session.lastSeen = Date.now();
    return session;
  }

  /** Finds a model. @throws RequestError 404 */
  getModel(id: string): TrainedModelEntry {
    const entry = this.find(id)?.models.get(id);
    if (entry !== undefined) return entry;
    throw new RequestError(
      404,
      `There is no model ${id.slice(0, 100)}: its session has ended, or the server was restarted. Load its last checkpoint into a new one.`,
    );
  }

  /** Finds a sampling session. @throws RequestError 404 */
  getSampling(id: string): SamplingSession {
    const entry = this.find(id)?.sampling.get(id);
    if (entry !== undefined) return entry;
    throw new RequestError(
      404,
      `There is no sampling session ${id.slice(0, 100)}: its session has ended, the server was restarted, or newer snapshots without a name took its place.`,
    );
  }

  /** Ends a session. @throws RequestError 404 for an unknown one. */
  async finish(id: string): Promise<void> {
    if (this.ended.has(id)) return;
    await this.end(this.get(id));
  }

  /** Ends all sessions. */
  async close(): Promise<void> {
    clearInterval(this.timer);
    for (const session of this.sessions.values()) await this.end(session);
  }

  private find(id: string): TinkerSession | undefined {
    const session = this.sessions.get(id.slice(0, id.indexOf(":")));
    if (session !== undefined) session.lastSeen = Date.now();
    return session;
  }

  private endStale(): void {
    const now = Date.now();
    for (const session of this.sessions.values())
      if (now - session.lastSeen > this.timeoutMs) void this.end(session).catch(() => undefined);
  }

  private async end(session: TinkerSession): Promise<void> {
    this.sessions.delete(session.id);
    if (this.ended.size >= MAX_ENDED) this.ended.clear();
    this.ended.add(session.id);
    await this.onEnd(session);
  }
}
