import { setTimeout as sleep } from "node:timers/promises";
import { LlamaGymError } from "../../../core/errors.js";
import { errorMessage } from "../file-errors.js";
import type { HubConfig } from "./hub-config.js";

/** The longest pause that is made because the hub asks for it, in milliseconds. */
const MAX_RETRY_DELAY_MS = 60_000;

/** A failure that may pass: the connection broke, or the hub is busy. */
export class TransientError extends Error {
  /** How long the hub asks to wait, in milliseconds. */
  readonly retryAfterMs: number | undefined;

  constructor(message: string, options: { cause?: unknown; retryAfterMs?: number } = {}) {
    super(message, { cause: options.cause });
    this.retryAfterMs = options.retryAfterMs;
  }
}

/** What is asked for, in words for an error message: the model's id and revision, and the file. */
export interface RequestTarget {
  readonly id: string;
  readonly revision: string;
  readonly file?: string;
}

function describeTarget({ id, revision, file }: RequestTarget): string {
  return `${file === undefined ? "" : `${file} of `}${id}${revision === "main" ? "" : ` (revision ${revision})`}`;
}

/** HUB_UNREACHABLE, saying what was tried and what to do. */
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

/** The error for an answer that will not change: not there, or not allowed. */
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
      `The hub does not give ${describeTarget(target)} without a valid login. ${advice}`,
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

/** The pause that an answer asks for, in milliseconds. */
function retryDelay(response: Response): number | undefined {
  const after = response.headers.get("retry-after");
  if (after === null) return undefined;
  const seconds = Number(after);
  const delay = Number.isFinite(seconds) ? 1000 * seconds : Date.parse(after) - Date.now();
  return Number.isFinite(delay) ? Math.min(Math.max(delay, 0), MAX_RETRY_DELAY_MS) : undefined;
}

/**
 * Asks the hub once. Gives only good answers; throws a refusal (HUB_NOT_FOUND, HUB_UNAUTHORIZED, HUB_UNREACHABLE) for
 * what will not change and a `PassingFailure` for what may. The token is sent to the hub itself and never on to the
 * storage that it redirects to.
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

/** Node's fetch says only "fetch failed"; what failed is in the cause. */
function connectionReason(error: unknown): string {
  const cause: unknown = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error && cause.message !== "" ? cause.message : errorMessage(error);
}

/**
 * Tries until it succeeds, fails for good or has failed in passing more than `maxRetries` times in a row. `attempt`
 * calls `progress` when it got something, which starts the count anew. Throws HUB_UNREACHABLE in the end.
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
