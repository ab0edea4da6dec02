import { setTimeout as sleep } from "node:timers/promises";
import { LlamaGymError } from "../../../core/errors.js";
import { errorMessage } from "../file-errors.js";
import type { HubConfig } from "./hub-config.js";

/** Maximum delay granted to a Retry-After header. */
const MAX_RETRY_DELAY_MS = 60_000;

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

/** Creates HUB_UNREACHABLE. */
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

/** Returns the delay of a Retry-After header, in milliseconds. */
function retryDelay(response: Response): number | undefined {
  const after = response.headers.get("retry-after");
  if (after === null) return undefined;
  const seconds = Number(after);
  const delay = Number.isFinite(seconds) ? 1000 * seconds : Date.parse(after) - Date.now();
  return Number.isFinite(delay) ? Math.min(Math.max(delay, 0), MAX_RETRY_DELAY_MS) : undefined;
}

/**
 * Sends one request and returns only successful responses. The token is sent to the hub but not to
 * the storage it redirects to.
 * @throws HUB_NOT_FOUND, HUB_UNAUTHORIZED or HUB_UNREACHABLE for permanent failures,
 * `TransientError` for others.
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
  const signal =
    init.signal === undefined || init.signal === null ? abort.signal : AbortSignal.any([abort.signal, init.signal]);
  let response: Response;
  try {
    response = await fetch(url, { ...init, headers, signal });
  } catch (error) {
    if (abort.signal.aborted)
      throw new TransientError(`no answer within ${config.responseTimeoutMs / 1000} s`, { cause: error });
    throw new TransientError(connectionReason(error), { cause: error });
  } finally {
    clearTimeout(timer);
  }
  if (response.ok) return response;
  await response.body?.cancel();
  if (response.status === 408 || response.status === 429 || response.status >= 500) {
    throw new TransientError(`the hub answered ${response.status}`, { retryAfterMs: retryDelay(response) });
  }
  throw httpError(config, target, response);
}

/** Node's fetch reports only "fetch failed"; the reason is in the cause. */
function connectionReason(error: unknown): string {
  const cause: unknown = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error && cause.message !== "" ? cause.message : errorMessage(error);
}

/**
 * Retries until success, a permanent failure or more than `maxRetries` consecutive transient
 * failures. `attempt` calls `resetRetries` on progress. @throws HUB_UNREACHABLE.
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
