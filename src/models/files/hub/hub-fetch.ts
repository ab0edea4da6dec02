import { errorMessage, LlamaGymError } from "../../../core/errors.js";
import { sleep } from "../../../core/sleep.js";
import type { HubConfig } from "./hub-config.js";

/** A hub that is busy for longer is reported at once instead of waited for. */
const MAX_RETRY_AFTER_MS = 60_000;

/** A failure worth retrying: a broken connection or a busy hub. */
export class TransientError extends Error {
  /** Delay requested by the hub, in milliseconds. */
  readonly retryAfterMs: number | undefined;

  constructor(message: string, options: { cause?: unknown; retryAfterMs?: number } = {}) {
    super(message, { cause: options.cause });
    this.retryAfterMs = options.retryAfterMs;
  }
}

/** Request description for error messages. */
export interface RequestTarget {
  readonly id: string;
  readonly revision: string;
  readonly file?: string;
}

function describeTarget({ id, revision, file }: RequestTarget): string {
  return `${file === undefined ? "" : `${file} of `}${id}${revision === "main" ? "" : ` (revision ${revision})`}`;
}

export function unreachableError(
  config: HubConfig,
  target: RequestTarget,
  reason: string,
  cause?: unknown,
): LlamaGymError {
  return new LlamaGymError(
    "HUB_UNREACHABLE",
    `${describeTarget(target)} could not be fetched from ${config.endpoint}: ${reason}. ` +
      "Check the network and HF_ENDPOINT, or give the path of a local folder.",
    { cause },
  );
}

/** Converts a permanent error response to a LlamaGymError. */
function httpError(config: HubConfig, target: RequestTarget, response: Response): LlamaGymError {
  const code = response.headers.get("x-error-code");
  const { status } = response;
  const page = `${config.endpoint}/${target.id}`;
  if (status === 403 || code === "GatedRepo") {
    const advice = config.token === undefined ? "log in with a token (HF_TOKEN)" : "check what the token may read";
    return new LlamaGymError(
      "HUB_UNAUTHORIZED",
      `Access to ${describeTarget(target)} is not granted. Accept the model's conditions at ${page}, and ${advice}.`,
    );
  }
  if (status === 401 && (config.token !== undefined || code !== "RepoNotFound")) {
    const advice =
      config.token === undefined
        ? `It may be private or gated: set HF_TOKEN to a token that may read ${page}.`
        : "The token was refused: set HF_TOKEN to a valid one, or log in again.";
    return new LlamaGymError(
      "HUB_UNAUTHORIZED",
      `Access to ${describeTarget(target)} requires a valid login. ${advice}`,
    );
  }
  if (status === 404 || status === 401) {
    const missingPart = {
      RevisionNotFound: `has no revision "${target.revision}"`,
      EntryNotFound: `has no file ${target.file ?? ""}`,
    }[code ?? ""];
    const missing =
      missingPart === undefined
        ? `There is no model "${target.id}" on ${config.endpoint}. Check the id; a private one needs HF_TOKEN.`
        : `${target.id} on ${config.endpoint} ${missingPart}. See ${page}/tree/main.`;
    return new LlamaGymError("HUB_NOT_FOUND", missing);
  }
  return unreachableError(config, target, `the hub answered ${status}`);
}

/**
 * Returns the delay of a Retry-After header (seconds or a date) in milliseconds; undefined for an
 * invalid one.
 */
function parseRetryAfter(response: Response): number | undefined {
  const header = response.headers.get("retry-after")?.trim() ?? "";
  const delay = /^\d+$/u.test(header) ? 1000 * Number(header) : Date.parse(header) - Date.now();
  return Number.isNaN(delay) ? undefined : Math.max(delay, 0);
}

/** Returns a response's media type, for messages. */
export function getContentType(response: Response): string {
  return response.headers.get("content-type")?.split(";")[0].slice(0, 50) ?? "no content type";
}

/**
 * Yields a body's chunks. @throws TransientError when the connection breaks or no data arrives
 * within the timeout.
 */
export async function* readChunks(response: Response, timeoutMs: number): AsyncGenerator<Uint8Array> {
  if (response.body === null) return;
  const reader: ReadableStreamDefaultReader<Uint8Array> = response.body.getReader();
  try {
    for (;;) {
      const { done, value } = await readWithTimeout(reader, timeoutMs);
      if (done) return;
      yield value;
    }
  } finally {
    reader.cancel().catch(() => undefined);
  }
}

async function readWithTimeout(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  timeoutMs: number,
): ReturnType<typeof reader.read> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new TransientError(`no data for ${timeoutMs / 1000} s`)), timeoutMs);
  });
  const read = reader.read().catch((error: unknown) => {
    throw new TransientError("the connection was interrupted", { cause: error });
  });
  return Promise.race([read, timeout]).finally(() => clearTimeout(timer));
}

/**
 * Sends one request and returns only successful responses. The token is sent to the hub but not to
 * the storage it redirects to. @throws HUB_NOT_FOUND, HUB_UNAUTHORIZED or HUB_UNREACHABLE for
 * permanent failures, `TransientError` for others.
 */
export async function hubFetch(
  config: HubConfig,
  target: RequestTarget,
  url: string | URL,
  init: RequestInit = {},
): Promise<Response> {
  const headers = new Headers(init.headers);
  headers.set("User-Agent", "llamagym");
  const isHubOrigin = new URL(url).origin === new URL(config.endpoint).origin;
  if (config.token !== undefined && isHubOrigin) headers.set("Authorization", `Bearer ${config.token}`);
  const abort = new AbortController();
  const timer = setTimeout(() => abort.abort(), config.responseTimeoutMs);
  let response: Response;
  try {
    response = await fetch(url, { ...init, headers, signal: abort.signal });
  } catch (error) {
    const reason = abort.signal.aborted
      ? `no answer within ${config.responseTimeoutMs / 1000} s`
      : connectionReason(error);
    throw new TransientError(reason, { cause: error });
  } finally {
    clearTimeout(timer);
  }
  if (response.ok) return response;
  response.body?.cancel().catch(() => undefined);
  const { status } = response;
  if (status !== 408 && status !== 429 && status < 500) throw httpError(config, target, response);
  const retryAfterMs = parseRetryAfter(response);
  if (retryAfterMs === undefined || retryAfterMs <= MAX_RETRY_AFTER_MS)
    throw new TransientError(`the hub answered ${status}`, { retryAfterMs });
  const delay = `${Math.ceil(retryAfterMs / 1000)} s, but at most ${MAX_RETRY_AFTER_MS / 1000} s are waited`;
  throw unreachableError(config, target, `the hub answered ${status} and asks to retry after ${delay}`);
}

/** Node's fetch reports only "fetch failed"; the reason is in the cause. */
function connectionReason(error: unknown): string {
  const cause: unknown = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error && cause.message !== "" ? cause.message : errorMessage(error);
}

/**
 * Retries with doubling delays until success, a permanent failure, or more than `maxRetries`
 * transient failures since `attempt` last called `resetRetries`. @throws HUB_UNREACHABLE.
 */
export async function withRetries<Result>(
  config: HubConfig,
  target: RequestTarget,
  maxRetries: number,
  attempt: (resetRetries: () => void) => Promise<Result>,
): Promise<Result> {
  let failures = 0;
  for (;;) {
    try {
      return await attempt(() => {
        failures = 0;
      });
    } catch (error) {
      if (!(error instanceof TransientError)) throw error;
      failures += 1;
      if (failures > maxRetries) throw unreachableError(config, target, error.message, error);
      await sleep(error.retryAfterMs ?? config.retryDelayMs * 2 ** (failures - 1));
    }
  }
}
