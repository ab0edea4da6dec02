import { concatBytes } from "../../core/bytes.js";
import { errorMessage, LlamaGymError } from "../../core/errors.js";
import { sleep } from "../../core/sleep.js";

/** How a service is reached. */
export interface ConnectionOptions {
  /** Address, such as http://127.0.0.1:8000; may have a path. */
  readonly baseUrl: string;
  /** Sent as X-API-Key, or as `scheme` says; never stored or logged. */
  readonly apiKey: string;
  /** Default X-API-Key. */
  readonly scheme?: "x-api-key" | "bearer";
  /** Path of the routes below the address. Default /api/v1/. */
  readonly apiPath?: string;
  /** Environment variable with the key. Default TINKER_API_KEY. */
  readonly keyVariable?: string;
  /** Page that says what services support. Default docs/tinker.md. */
  readonly docs?: string;
  /** Seconds for which a service that does not answer is asked again. Default 3,600. */
  readonly maxWaitSeconds?: number;
  /** Receives a line when a request has waited for the service for a while. */
  readonly onWarning?: ((message: string) => void) | undefined;
}

/** A request: JSON or protobuf. */
export interface ServiceRequest {
  /** Path below /api/v1/. */
  readonly path: string;
  readonly method?: "GET" | "POST" | "DELETE";
  readonly json?: unknown;
  readonly protobuf?: Uint8Array<ArrayBuffer>;
  /** Whether the result may be protobuf. */
  readonly acceptsProtobuf?: boolean;
  readonly headers?: Readonly<Record<string, string>>;
  readonly timeoutMs?: number;
  /**
   * Seconds for which a service that does not answer is asked again, if fewer than those of the
   * connection.
   */
  readonly maxWaitSeconds?: number;
  /** Statuses below 500 that are answers of this route, not failures to repeat or to report. */
  readonly expectedStatuses?: readonly number[];
}

/** An answer: JSON, or the bytes of a protobuf message. */
export interface ServiceAnswer {
  readonly status: number;
  readonly json: unknown;
  readonly bytes: Uint8Array | undefined;
}

/** Version of the official SDK whose protocol this client speaks. */
export const SDK_VERSION = "0.38.0";

const MAX_WAIT_SECONDS = 3600;
const REQUEST_TIMEOUT_MS = 60_000;
const FIRST_DELAY_MS = 500;
const MAX_DELAY_MS = 30_000;
const MAX_RETRY_AFTER_MS = 300_000;
const MAX_RESPONSE_BYTES = 2 ** 28;
const WARN_AFTER_MS = 15_000;
const RETRIED_STATUSES: ReadonlySet<number> = new Set([402, 408, 409, 425, 429]);

/** Sends requests to a service, and again while it is busy or unreachable. */
export class ServiceConnection {
  private readonly root: string;
  private readonly closed = new AbortController();
  private apiKey: string;

  constructor(private readonly options: ConnectionOptions) {
    this.root = `${options.baseUrl.replace(/\/+$/u, "")}${options.apiPath ?? "/api/v1/"}`;
    this.apiKey = options.apiKey;
  }

  get baseUrl(): string {
    return this.options.baseUrl;
  }

  /** Replaces the key by a short-lived one that the service issued. */
  useKey(apiKey: string): void {
    this.apiKey = apiKey;
  }

  /**
   * Sends a request. Repetitions have the same idempotency key, by which the service recognizes
   * them.
   * @throws SERVICE_FAILED for an answer that repeating does not change, or if the service does not
   * answer for too long.
   */
  async send(request: ServiceRequest): Promise<ServiceAnswer> {
    const { maxWaitSeconds = MAX_WAIT_SECONDS, onWarning } = this.options;
    const started = performance.now();
    const idempotencyKey = crypto.randomUUID();
    let delay = FIRST_DELAY_MS;
    let isWarned = false;
    for (let attempt = 0; ; attempt++) {
      const result = await this.attempt(request, idempotencyKey, attempt);
      if (!("problem" in result)) return result;
      const { isFinal, retryAfterMs, status } = result;
      const problem = result.problem.replace(/\.$/u, "");
      const waited = performance.now() - started;
      if (this.closed.signal.aborted) throw this.failure(request, "the client was closed", status);
      const maxWait = Math.min(maxWaitSeconds, request.maxWaitSeconds ?? Infinity);
      if (isFinal || waited > 1000 * maxWait) throw this.failure(request, problem, status);
      if (!isWarned && waited > WARN_AFTER_MS) {
        isWarned = true;
        onWarning?.(`${this.baseUrl} does not answer ${request.path}: ${problem}. Waiting for it.`);
      }
      await sleep(retryAfterMs ?? delay);
      delay = Math.min(MAX_DELAY_MS, 2 * delay);
    }
  }

  /** Aborts the requests that still wait. */
  close(): void {
    this.closed.abort();
  }

  private failure({ path }: ServiceRequest, problem: string, status: number | undefined): ServiceError {
    return new ServiceError(`${this.baseUrl} failed at ${path}: ${problem}. ${this.adviseOn(status)}`, status);
  }

  private adviseOn(status: number | undefined): string {
    const { keyVariable = "TINKER_API_KEY", docs = "docs/tinker.md" } = this.options;
    if (status === undefined) return "Check that the service runs and that the address is right, then resume the run.";
    if (status === 401 || status === 403) return `Set ${keyVariable} to a key of this service.`;
    if (status === 402) return "Check the balance of the account, then resume the run.";
    if (status === 404)
      return "The service does not have it: check the address, or resume the run from its checkpoint.";
    if (status >= 500) return "Resume the run when the service works again.";
    return `See ${docs} for what services support.`;
  }

  /** Returns the headers with the key; a service may need none. */
  private keyHeaders(): Readonly<Record<string, string>> {
    if (this.options.scheme !== "bearer") return { "x-api-key": this.apiKey, "x-sdk-version": SDK_VERSION };
    return this.apiKey === "" ? {} : { authorization: `Bearer ${this.apiKey}` };
  }

  private async attempt(
    { path, method = "POST", json, protobuf, acceptsProtobuf = false, ...request }: ServiceRequest,
    idempotencyKey: string,
    attempt: number,
  ): Promise<ServiceAnswer | FailedAttempt> {
    const { timeoutMs = REQUEST_TIMEOUT_MS, expectedStatuses = [] } = request;
    const headers = {
      "content-type": protobuf === undefined ? "application/json" : "application/x-protobuf",
      accept: acceptsProtobuf ? "application/x-protobuf, application/json;q=0.9" : "application/json",
      ...this.keyHeaders(),
      "x-stainless-retry-count": String(attempt),
      ...(method === "GET" ? {} : { "x-idempotency-key": idempotencyKey }),
      ...request.headers,
    };
    try {
      const response = await fetch(this.root + path, {
        method,
        headers,
        body: method === "POST" ? (protobuf ?? JSON.stringify(json ?? {})) : undefined,
        // A redirect would carry the key to another host.
        redirect: "error",
        signal: AbortSignal.any([this.closed.signal, AbortSignal.timeout(timeoutMs)]),
      });
      const { status } = response;
      const body = await readBody(response);
      const isProtobuf = response.headers.get("content-type")?.includes("protobuf") === true;
      if (response.ok || expectedStatuses.includes(status))
        return { status, json: isProtobuf ? undefined : parseJson(body), bytes: isProtobuf ? body : undefined };
      const isRetried =
        (RETRIED_STATUSES.has(status) || status >= 500) && response.headers.get("x-should-retry") !== "false";
      return {
        problem: `HTTP ${status} ${describeBody(body)}`.trim(),
        isFinal: !isRetried,
        retryAfterMs: readRetryAfter(response.headers),
        status,
      };
    } catch (error) {
      return { problem: describeNetworkError(error), isFinal: false, retryAfterMs: undefined, status: undefined };
    }
  }
}

interface FailedAttempt {
  readonly problem: string;
  readonly isFinal: boolean;
  readonly retryAfterMs: number | undefined;
  readonly status: number | undefined;
}

/** A SERVICE_FAILED error with the HTTP status that the service answered. */
export class ServiceError extends LlamaGymError {
  constructor(
    message: string,
    readonly status: number | undefined,
  ) {
    super("SERVICE_FAILED", message);
  }
}

/** Reads a body of at most MAX_RESPONSE_BYTES. */
async function readBody(response: Response): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    size += chunk.length;
    if (size > MAX_RESPONSE_BYTES) throw new Error(`an answer of more than ${MAX_RESPONSE_BYTES} bytes`);
    chunks.push(chunk);
  }
  return concatBytes(chunks);
}

function parseJson(body: Uint8Array): unknown {
  if (body.length === 0) return {};
  try {
    return JSON.parse(new TextDecoder().decode(body));
  } catch {
    return undefined;
  }
}

/** Returns the message in an error's body, as FastAPI, OpenAI and others write it. */
function describeBody(body: Uint8Array): string {
  const parsed = parseJson(body);
  const { detail, error, message } = (parsed ?? {}) as Readonly<Record<string, unknown>>;
  const { message: nested } = (error ?? {}) as Readonly<Record<string, unknown>>;
  const text = detail ?? nested ?? error ?? message;
  return text === undefined ? "" : (typeof text === "string" ? text : JSON.stringify(text)).slice(0, 400);
}

function readRetryAfter(headers: Headers): number | undefined {
  const seconds = Number(headers.get("retry-after") ?? NaN);
  return seconds >= 0 ? Math.min(MAX_RETRY_AFTER_MS, 1000 * seconds) : undefined;
}

function describeNetworkError(error: unknown): string {
  const cause = (error as { readonly cause?: { readonly code?: string; readonly message?: string } }).cause;
  return cause?.code ?? cause?.message ?? errorMessage(error);
}
