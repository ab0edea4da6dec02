import { LlamaGymError, type ErrorCode } from "../../core/errors.js";
import { RequestError, toRequestError } from "../server/request-error.js";

/** What a future has when it is done: JSON, a protobuf message, or an error. */
export type FutureResult =
  | { readonly json: object }
  | { readonly protobuf: Uint8Array<ArrayBuffer> }
  | { readonly error: string; readonly category: "user" | "server" };

interface Future {
  readonly session: string;
  readonly isSample: boolean;
  readonly waiters: Set<() => void>;
  readonly abort: AbortController;
  result: FutureResult | undefined;
  bytes: number;
  /** When the result was first read. */
  retrievedMs: number | undefined;
}

/** Finished or failed samples of a sampling session, in the order in which they ended. */
interface SampleLog {
  /** Number of samples that are no longer in `ended`. */
  dropped: number;
  readonly ended: { readonly requestId: string; readonly failed: boolean; readonly bytes: number }[];
  readonly waiters: Set<() => void>;
}

/** Options of `Futures`. */
export interface FuturesOptions {
  /** Requests that run or wait; more are refused. Default 8192. */
  readonly maxPending?: number;
  /**
   * Bytes of results that are kept; above it, those that were read go first, then the oldest.
   * Default 512 MiB.
   */
  readonly maxBytes?: number;
  /** Logs an error that the client did not cause. */
  readonly onError?: (error: unknown) => void;
}

/** Results and errors remain this long after they were read: the response may have been lost. */
const GRACE_MS = 60_000;
/** Bytes that a future is reckoned to take without its result. */
const OWN_BYTES = 512;
/** Codes of errors that a client's values or checkpoints cause. */
const USER_ERRORS: readonly ErrorCode[] = ["WEIGHTS_MISMATCH", "TRAINING_DIVERGED", "FILE_CORRUPT"];
/** Ends of samples that a sampling session remembers for polling. */
const MAX_LOG = 65_536;

/** Work that was asked for, and its results until they are retrieved. */
export class Futures {
  // A Map iterates in insertion order, so the first is the oldest.
  private readonly futures = new Map<string, Future>();
  private readonly logs = new Map<string, SampleLog>();
  private pending = 0;
  private bytes = 0;

  constructor(private readonly options: FuturesOptions = {}) {}

  has(id: string): boolean {
    return this.futures.has(id);
  }

  /** Number of requests that run or wait. */
  get pendingCount(): number {
    return this.pending;
  }

  /**
   * Starts work under an id; a known id changes nothing. Errors of the work are its result.
   * @throws RequestError 429 with more than `maxPending` requests.
   */
  start(
    id: string,
    session: string,
    work: (signal: AbortSignal) => Promise<FutureResult>,
    { samplingSession }: { readonly samplingSession?: string } = {},
  ): void {
    if (this.futures.has(id)) return;
    const { maxPending = 8192 } = this.options;
    if (this.pending >= maxPending)
      throw new RequestError(429, `The server has ${maxPending} requests already. Try again later.`, { retryAfter: 1 });
    this.pending++;
    const future: Future = {
      session,
      isSample: samplingSession !== undefined,
      waiters: new Set(),
      abort: new AbortController(),
      result: undefined,
      bytes: OWN_BYTES,
      retrievedMs: undefined,
    };
    this.futures.set(id, future);
    this.bytes += OWN_BYTES;
    void work(future.abort.signal)
      .catch((error: unknown) => this.toFailure(error))
      .then((result) => {
        this.pending--;
        this.finish(id, future, result, samplingSession);
      });
  }

  /**
   * Waits for a result, at most `waitMs`; undefined if it is not there by then. @throws
   * RequestError 410 for an unknown id.
   */
  async retrieve(id: string, waitMs: number, signal?: AbortSignal): Promise<FutureResult | undefined> {
    const future = this.futures.get(id);
    if (future === undefined)
      throw new RequestError(
        410,
        `There is no request ${id}: its result was retrieved, has expired, or belongs to an earlier start of the server.`,
      );
    if (future.result === undefined) await wait(future.waiters, waitMs, signal);
    if (future.result !== undefined) future.retrievedMs ??= Date.now();
    return future.result;
  }

  /**
   * Lists the samples of a sampling session that ended after `cursor`; waits for one at most
   * `waitMs`.
   */
  async listEnded(
    samplingSession: string,
    cursor: number,
    waitMs: number,
    signal?: AbortSignal,
  ): Promise<{ readonly ended: SampleLog["ended"]; readonly cursor: number }> {
    const log = this.log(samplingSession);
    const count = () => log.dropped + log.ended.length;
    if (count() <= cursor && waitMs > 0) await wait(log.waiters, waitMs, signal);
    return { ended: log.ended.slice(Math.max(0, cursor - log.dropped)), cursor: Math.max(cursor, count()) };
  }

  /** Drops results that a client has. */
  drop(ids: readonly string[]): void {
    for (const id of ids) if (this.futures.get(id)?.result !== undefined) this.remove(id);
  }

  /** Stops a sample whose result is no longer wanted. */
  cancel(id: string): void {
    const future = this.futures.get(id);
    if (future?.isSample === true) future.abort.abort();
  }

  /** Forgets the futures of a session that has ended; samples that run are stopped. */
  endSession(session: string): void {
    for (const future of this.futures.values()) if (future.session === session) future.abort.abort();
    for (const log of this.logs.keys()) if (log.startsWith(`${session}:`)) this.logs.delete(log);
  }

  private finish(id: string, future: Future, result: FutureResult, samplingSession: string | undefined): void {
    future.result = result;
    const size = "protobuf" in result ? result.protobuf.length : JSON.stringify(result).length;
    future.bytes += size;
    this.bytes += size;
    for (const resume of future.waiters) resume();
    if (samplingSession !== undefined) {
      const log = this.log(samplingSession);
      log.ended.push({ requestId: id, failed: "error" in result, bytes: size });
      if (log.ended.length > MAX_LOG) log.dropped += log.ended.splice(0, MAX_LOG / 2).length;
      for (const resume of log.waiters) resume();
    }
    this.makeRoom();
  }

  private makeRoom(): void {
    const now = Date.now();
    const isDone = ({ result }: Future) => result !== undefined;
    const isRead = ({ retrievedMs }: Future) => retrievedMs !== undefined && now - retrievedMs > GRACE_MS;
    for (const [id, future] of this.futures) if (isDone(future) && isRead(future)) this.remove(id);
    const { maxBytes = 2 ** 29 } = this.options;
    for (const wanted of [({ retrievedMs }: Future) => retrievedMs !== undefined, () => true])
      for (const [id, future] of this.futures) {
        if (this.bytes <= maxBytes) return;
        if (isDone(future) && wanted(future)) this.remove(id);
      }
  }

  private remove(id: string): void {
    this.bytes -= this.futures.get(id)!.bytes;
    this.futures.delete(id);
  }

  private log(samplingSession: string): SampleLog {
    let log = this.logs.get(samplingSession);
    if (log === undefined) this.logs.set(samplingSession, (log = { dropped: 0, ended: [], waiters: new Set() }));
    return log;
  }

  private toFailure(error: unknown): FutureResult {
    if (error instanceof LlamaGymError && USER_ERRORS.includes(error.code))
      return { error: error.message, category: "user" };
    const requestError = toRequestError(error);
    if (requestError.status < 500) return { error: requestError.message, category: "user" };
    this.options.onError?.(requestError.cause ?? error);
    // What is wrong with a folder or with the values of a model is no secret of the server.
    return { error: error instanceof LlamaGymError ? error.message : requestError.message, category: "server" };
  }
}

/** Waits until one of the waiters is called, the time is over, or the client has left. */
async function wait(waiters: Set<() => void>, waitMs: number, signal?: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    const finish = () => {
      clearTimeout(timer);
      waiters.delete(finish);
      signal?.removeEventListener("abort", finish);
      resolve();
    };
    const timer = setTimeout(finish, waitMs);
    waiters.add(finish);
    signal?.addEventListener("abort", finish);
  });
}
