import { LlamaGymError } from "../../errors.js";
import { reasonOf } from "../failure.js";
import { ask, PassingFailure, retrying, unreachable, type Subject } from "./request.js";
import type { HubSettings } from "./settings.js";

/** How often a question is asked again: a cached model need not wait long when there is no network. */
const ANSWER_RETRIES = 2;

/** A file in a model's repository. */
export interface RemoteFile {
  /** The path in the repository. */
  readonly path: string;
  readonly size: number;
  /** The name of its blob in the cache: the SHA-256 of a large file, git's SHA-1 of a small one. */
  readonly hash: string;
}

/** A fetch for \@huggingface/hub: with the token, timeouts (for the whole answer) and errors of this folder. */
function fetchFor(settings: HubSettings, subject: Subject): typeof fetch {
  return async (input, init) => {
    const signal = AbortSignal.timeout(settings.answerTimeout);
    const url = input instanceof Request ? input.url : input;
    const response = await ask(settings, subject, url, { ...init, signal });
    const body = await response.arrayBuffer().catch((error: unknown) => {
      throw new PassingFailure(`its answer broke off (${reasonOf(error)})`, { cause: error });
    });
    return new Response(body, { status: response.status, headers: response.headers });
  };
}

/** The error for whatever went wrong while an answer was read. */
function misunderstood(settings: HubSettings, subject: Subject, error: unknown): unknown {
  if (error instanceof LlamaGymError || error instanceof PassingFailure) return error;
  return unreachable(settings, subject, `its answer was not understood (${reasonOf(error)})`, error);
}

/** The commit that a revision stands for. Throws HUB_NOT_FOUND, HUB_UNAUTHORIZED, HUB_UNREACHABLE. */
export async function commitOf(settings: HubSettings, id: string, revision: string): Promise<string> {
  const subject = { id, revision };
  const { modelInfo } = await import("@huggingface/hub");
  const { sha } = await retrying(settings, subject, ANSWER_RETRIES, async () => {
    try {
      const params = { name: id, revision, hubUrl: settings.endpoint, fetch: fetchFor(settings, subject) };
      return await modelInfo({ ...params, additionalFields: ["sha"] });
    } catch (error) {
      throw misunderstood(settings, subject, error);
    }
  });
  if (typeof sha === "string" && isCommit(sha)) return sha;
  throw unreachable(settings, subject, "its answer names no commit");
}

/** Whether a revision is a whole commit hash. */
export function isCommit(revision: string): boolean {
  return /^[0-9a-f]{40}$/u.test(revision);
}

/**
 * All files of a model at a commit. Throws HUB_NOT_FOUND, HUB_UNAUTHORIZED, HUB_UNREACHABLE (also for file names that
 * would lead out of the cache).
 */
export async function filesOf(settings: HubSettings, id: string, commit: string): Promise<RemoteFile[]> {
  const subject = { id, revision: commit };
  const { listFiles } = await import("@huggingface/hub");
  const params = {
    repo: { type: "model" as const, name: id },
    revision: commit,
    recursive: true,
    hubUrl: settings.endpoint,
    fetch: fetchFor(settings, subject),
  };
  return retrying(settings, subject, ANSWER_RETRIES, async () => {
    const files: RemoteFile[] = [];
    try {
      for await (const { type, path, size, oid, lfs } of listFiles(params)) {
        if (type === "file") files.push({ path, size: lfs?.size ?? size, hash: lfs?.oid ?? oid ?? "" });
      }
    } catch (error) {
      throw misunderstood(settings, subject, error);
    }
    const strange = files.find((file) => !isSafe(file));
    if (strange !== undefined) {
      throw unreachable(settings, subject, `it lists a file that cannot be kept (${JSON.stringify(strange)})`);
    }
    return files;
  });
}

function isSafe({ path, size, hash }: RemoteFile): boolean {
  const parts = path.split("/");
  const staysInside = parts.every((part) => part !== "" && part !== "." && part !== ".." && !/[\\:\0]/u.test(part));
  return staysInside && Number.isSafeInteger(size) && size >= 0 && /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/u.test(hash);
}
