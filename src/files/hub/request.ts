import { setTimeout as sleep } from "node:timers/promises";
import { LlamaGymError } from "../../errors.js";
import { reasonOf } from "../failure.js";
import type { HubSettings } from "./settings.js";

/** The longest pause that is made because the hub asks for it, in milliseconds. */
const MAX_PAUSE = 60_000;

/** A failure that may pass: the connection broke, or the hub is busy. */
export class PassingFailure extends Error {
  /** How long the hub asks to wait, in milliseconds. */
  readonly pause: number | undefined;

  constructor(message: string, options: { cause?: unknown; pause?: number } = {}) {
    super(message, { cause: options.cause });
    this.pause = options.pause;
  }
}

/** What is asked for, in words for an error message: the model's id and revision, and the file. */
export interface Subject {
  readonly id: string;
  readonly revision: string;
  readonly file?: string;
}

function named({ id, revision, file }: Subject): string {
  return `${file === undefined ? "" : `${file} of `}${id}${revision === "main" ? "" : ` (revision ${revision})`}`;
}

/** HUB_UNREACHABLE, saying what was tried and what to do. */
export function unreachable(settings: HubSettings, subject: Subject, reason: string, cause?: unknown): LlamaGymError {
  return new LlamaGymError(
    "HUB_UNREACHABLE",
    `${named(subject)} could not be fetched from ${settings.endpoint}: ${reason}. ` +
      "Check the network and HF_ENDPOINT, or give the path of a local folder.",
    { cause },
  );
}

/** The error for an answer that will not change: not there, or not allowed. */
function refusal(settings: HubSettings, subject: Subject, response: Response): LlamaGymError {
  const code = response.headers.get("x-error-code");
  const { status } = response;
  const page = `${settings.endpoint}/${subject.id}`;
  if (status === 403 || code === "GatedRepo") {
    const advice = settings.token === undefined ? "log in with a token (HF_TOKEN)" : "check what the token may read";
    return new LlamaGymError(
      "HUB_UNAUTHORIZED",
      `Access to ${named(subject)} is not granted. Accept the model's conditions at ${page}, and ${advice}.`,
    );
  }
  if (status === 401 && (settings.token !== undefined || code !== "RepoNotFound")) {
    const advice =
      settings.token === undefined
        ? `It may be private or gated: set HF_TOKEN to a token that may read ${page}.`
        : "The token was refused: set HF_TOKEN to a valid one, or log in again.";
    return new LlamaGymError(
      "HUB_UNAUTHORIZED",
      `The hub does not give ${named(subject)} without a valid login. ${advice}`,
    );
  }
  if (status === 404 || status === 401) {
    const what = {
      RevisionNotFound: `has no revision "${subject.revision}"`,
      EntryNotFound: `has no file ${subject.file ?? ""}`,
    }[code ?? ""];
    const missing =
      what === undefined
        ? `There is no model "${subject.id}" on ${settings.endpoint}. Check the id; a private one needs HF_TOKEN.`
        : `${subject.id} on ${settings.endpoint} ${what}. See ${page}/tree/main.`;
    return new LlamaGymError("HUB_NOT_FOUND", missing);
  }
  return unreachable(settings, subject, `the hub answered ${status}`);
}

/** The pause that an answer asks for, in milliseconds. */
function pauseOf(response: Response): number | undefined {
  const after = response.headers.get("retry-after");
  if (after === null) return undefined;
  const seconds = Number(after);
  const pause = Number.isFinite(seconds) ? 1000 * seconds : Date.parse(after) - Date.now();
  return Number.isFinite(pause) ? Math.min(Math.max(pause, 0), MAX_PAUSE) : undefined;
}

/**
 * Asks the hub once. Gives only good answers; throws a refusal (HUB_NOT_FOUND, HUB_UNAUTHORIZED, HUB_UNREACHABLE) for
 * what will not change and a `PassingFailure` for what may. The token is sent to the hub itself and never on to the
 * storage that it redirects to.
 */
export async function ask(
  settings: HubSettings,
  subject: Subject,
  url: string | URL,
  init: RequestInit = {},
): Promise<Response> {
  const headers = new Headers(init.headers);
  headers.set("User-Agent", "llamagym");
  const atHub = new URL(url).origin === new URL(settings.endpoint).origin;
  if (settings.token !== undefined && atHub) headers.set("Authorization", `Bearer ${settings.token}`);
  const abort = new AbortController();
  const timer = setTimeout(() => abort.abort(), settings.answerTimeout);
  const signal =
    init.signal === undefined || init.signal === null ? abort.signal : AbortSignal.any([abort.signal, init.signal]);
  let response: Response;
  try {
    response = await fetch(url, { ...init, headers, signal });
  } catch (error) {
    if (abort.signal.aborted)
      throw new PassingFailure(`no answer within ${settings.answerTimeout / 1000} s`, { cause: error });
    throw new PassingFailure(connectionReason(error), { cause: error });
  } finally {
    clearTimeout(timer);
  }
  if (response.ok) return response;
  await response.body?.cancel();
  if (response.status === 408 || response.status === 429 || response.status >= 500) {
    throw new PassingFailure(`the hub answered ${response.status}`, { pause: pauseOf(response) });
  }
  throw refusal(settings, subject, response);
}

/** Node's fetch says only "fetch failed"; what failed is in the cause. */
function connectionReason(error: unknown): string {
  const cause: unknown = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error && cause.message !== "" ? cause.message : reasonOf(error);
}

/**
 * Tries until it succeeds, fails for good or has failed in passing more than `maxRetries` times in a row. `attempt`
 * calls `progress` when it got something, which starts the count anew. Throws HUB_UNREACHABLE in the end.
 */
export async function retrying<Result>(
  settings: HubSettings,
  subject: Subject,
  maxRetries: number,
  attempt: (progress: () => void) => Promise<Result>,
): Promise<Result> {
  let failures = 0;
  for (;;) {
    try {
      return await attempt(() => {
        failures = 0;
      });
    } catch (error) {
      if (!(error instanceof PassingFailure)) throw error;
      failures += 1;
      if (failures > maxRetries) throw unreachable(settings, subject, error.message, error);
      await sleep(error.pause ?? settings.retryDelay * 2 ** (failures - 1));
    }
  }
}
